internal import ByteCoding
internal import Glibc

/// Header fields in the order of arrival. Names are compared without regard to case.
///
/// All fields are in one buffer, as the lines of a head. A head is read, filtered and written again line by line, and a
/// value becomes a `String` only when it is asked for.
public struct HeaderFields: Sendable, Hashable {
  /// A name and its value.
  public struct Field: Sendable, Hashable {
    public let name: String
    /// The value as text. In a value that is not UTF-8, U+FFFD replaces each invalid part, so it equals no value that
    /// the gate knows.
    public let value: String
    /// The original bytes of a value that is not UTF-8 (`obs-text`, RFC 9110 section 5.5), to be forwarded instead of
    /// `value`; otherwise `nil`.
    public let octets: [UInt8]?

    public init(name: String, value: String) {
      self.name = name
      self.value = value
      octets = nil
    }

    /// Creates a field whose value is not UTF-8.
    public init(name: String, octets: [UInt8]) {
      self.name = name
      value = String(decoding: octets, as: UTF8.self)
      self.octets = octets
    }
  }

  /// The bytes of a field, lent for the duration of a call.
  public struct Line {
    /// `name: value` and CRLF.
    public let bytes: UnsafeBufferPointer<UInt8>
    public let name: UnsafeBufferPointer<UInt8>
    public let value: UnsafeBufferPointer<UInt8>
    /// Whether the value is UTF-8.
    @usableFromInline let isText: Bool

    @inlinable
    init(_ lines: UnsafeBufferPointer<UInt8>, _ place: Place) {
      bytes = UnsafeBufferPointer(rebasing: lines[place.line])
      name = UnsafeBufferPointer(rebasing: lines[place.name])
      value = UnsafeBufferPointer(rebasing: lines[place.value])
      isText = place.isText
    }

    /// Whether the name is `name`, without regard to case.
    public func isNamed(_ name: String) -> Bool {
      guard name.utf8.count == self.name.count else { return false }
      var name = name
      return name.withUTF8 { HeaderFields.isSame($0, self.name) }
    }
  }

  /// The position of a field in `lines`.
  @usableFromInline
  struct Place: Sendable, Hashable {
    @usableFromInline let start: UInt32
    /// The end of the value.
    @usableFromInline let end: UInt32
    @usableFromInline let key: NameKey
    @usableFromInline let isText: Bool

    /// - Parameter name: The name at `start`.
    init(start: Int, name: UnsafeBufferPointer<UInt8>, end: Int, isText: Bool) {
      (self.start, self.end) = (UInt32(start), UInt32(end))
      key = NameKey(name)
      self.isText = isText
    }

    @inlinable
    var line: Range<Int> { Int(start)..<Int(end) + 2 }
    @inlinable
    var name: Range<Int> { Int(start)..<Int(start) + key.length }
    @inlinable
    var value: Range<Int> { Int(start) + key.length + 2..<Int(end) }
  }

  /// The length of a name, below 16 MiB, and its first letter. One comparison distinguishes most names.
  @usableFromInline
  struct NameKey: Sendable, Hashable {
    @usableFromInline let number: UInt32

    @inline(__always)
    init(_ name: UnsafeBufferPointer<UInt8>) {
      precondition(name.count < 1 << 24, "a name below 16 MiB")
      number = UInt32(truncatingIfNeeded: name.count) << 8 | UInt32((name.first ?? 0) | 0x20)
    }

    @inlinable
    var length: Int { Int(number >> 8) }
    /// One of 64 bits. If no name of a head has it, the head has no field of this name.
    var mark: UInt64 { 1 << UInt64((number ^ number >> 6) & 63) }
  }

  /// `name: value` and CRLF of each field, one after the other. So equal fields have equal bytes.
  @usableFromInline private(set) var lines: [UInt8] = []
  @usableFromInline private(set) var places: [Place] = []
  /// The marks of all names.
  private var marks: UInt64 = 0

  public init() {}

  public init(_ fields: [Field]) {
    for field in fields { append(field) }
  }

  /// The fields of a scanned head.
  ///
  /// - Parameter bytes: The bytes whose fields `scanned` lists.
  public init(_ scanned: ScannedFields, in bytes: UnsafeBufferPointer<UInt8>) {
    let all = UnsafeBufferPointer(rebasing: bytes[scanned.range])
    guard !scanned.isCanonical else {
      lines.reserveCapacity(all.count + Self.ownBytes)
      lines.append(contentsOf: all)
      places = scanned.places
      marks = scanned.marks
      return
    }
    reserve(scanned.places.count, bytes: all.count)
    for (place, value) in zip(scanned.places, scanned.values) {
      append(
        UnsafeBufferPointer(rebasing: all[place.name]), UnsafeBufferPointer(rebasing: all[value]), isText: place.isText)
    }
  }

  /// Room for a few fields that are added later.
  private static let ownBytes = 64

  /// Reserves memory for `count` fields that have `bytes` bytes together.
  public mutating func reserve(_ count: Int, bytes: Int) {
    places.reserveCapacity(count)
    // Each line has a colon, a space and CRLF.
    lines.reserveCapacity(bytes + 4 * count)
  }

  public var isEmpty: Bool { places.isEmpty }

  /// The number of bytes of all lines.
  public var byteCount: Int { lines.count }

  /// All fields as texts.
  public var fields: [Field] {
    var fields: [Field] = []
    fields.reserveCapacity(places.count)
    forEachLine { line in
      let name = String(decoding: line.name, as: UTF8.self)
      fields.append(
        line.isText
          ? Field(name: name, value: String(decoding: line.value, as: UTF8.self))
          : Field(name: name, octets: Array(line.value)))
    }
    return fields
  }

  // MARK: Adding

  public mutating func append(_ name: String, _ value: String) {
    var (name, value) = (name, value)
    name.withUTF8 { name in value.withUTF8 { append(name, $0, isText: true) } }
  }

  public mutating func append(_ field: Field) {
    guard let octets = field.octets else {
      append(field.name, field.value)
      return
    }
    var name = field.name
    name.withUTF8 { name in octets.withUnsafeBufferPointer { append(name, $0, isText: false) } }
  }

  /// Appends a field of other fields.
  public mutating func append(_ line: Line) { append(line.name, line.value, isText: line.isText) }

  /// Appends a field by its bytes. The name is ASCII.
  ///
  /// - Parameter isText: Whether the value is UTF-8.
  public mutating func append(
    _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, isText: Bool
  ) {
    let start = lines.count
    lines.append(addingCapacity: name.count + value.count + 4) { line in
      line.append(name)
      line.append(": ")
      line.append(value)
      line.append("\r\n")
    }
    let place = Place(start: start, name: name, end: lines.count - 2, isText: isText)
    places.append(place)
    marks |= place.key.mark
  }

  /// Returns the fields for which `isKept` returns `true`.
  @inlinable
  public func filter(_ isKept: (Line) -> Bool) -> HeaderFields {
    var kept = HeaderFields()
    kept.reserve(places.count + 2, bytes: lines.count)
    forEachLine { line in
      if isKept(line) { kept.append(line) }
    }
    return kept
  }

  // MARK: Reading

  /// Calls `body` with each field, in order. The bytes must not be used after `body` returns.
  @inlinable
  public func forEachLine<Failure: Error>(_ body: (Line) throws(Failure) -> Void) throws(Failure) {
    try lines.withUnsafeBufferPointer { lines throws(Failure) in
      for place in places { try body(Line(lines, place)) }
    }
  }

  /// Calls `body` with the lines of the fields for which `isKept` returns `true`, in order. Lines that follow each other
  /// are one piece; a piece may be empty. The bytes must not be used after `body` returns.
  @inlinable
  public func forEachRun(where isKept: (Line) -> Bool, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    lines.withUnsafeBufferPointer { lines in
      var run = 0..<0
      for place in places where isKept(Line(lines, place)) {
        if place.line.lowerBound != run.upperBound {
          body(UnsafeBufferPointer(rebasing: lines[run]))
          run = place.line
        }
        run = run.lowerBound..<place.line.upperBound
      }
      body(UnsafeBufferPointer(rebasing: lines[run]))
    }
  }

  /// Returns the values of all fields called `name`, in order.
  public func values(of name: FieldName) -> [String] { values(of: name.bytes) }

  /// The same for a name that is not a literal.
  public func values(named name: String) -> [String] {
    var name = name
    return name.withUTF8(values)
  }

  private func values(of name: UnsafeBufferPointer<UInt8>) -> [String] {
    var values: [String] = []
    var next = place(of: name, from: 0)
    while let index = next {
      values.append(text(at: index))
      next = place(of: name, from: index + 1)
    }
    return values
  }

  /// Returns the value of the first field called `name`; `nil` if there is none.
  public func first(_ name: FieldName) -> String? { place(of: name.bytes, from: 0).map(text) }

  /// The same for a name that is not a literal.
  public func first(named name: String) -> String? { values(named: name).first }

  /// Returns whether there is a field called `name`.
  public func contains(_ name: FieldName) -> Bool { place(of: name.bytes, from: 0) != nil }

  /// How often a field occurs, with its value if it occurs once.
  public enum Occurrence: Sendable, Hashable {
    case absent
    case once(String)
    case repeated
  }

  /// Returns the value of the only field called `name`. A field that occurs twice is `.repeated`, so that no caller
  /// chooses between the values.
  public func only(_ name: FieldName) -> Occurrence { only(name.bytes) }

  /// The same for a name that is not a literal.
  public func only(named name: String) -> Occurrence {
    var name = name
    return name.withUTF8(only)
  }

  private func only(_ name: UnsafeBufferPointer<UInt8>) -> Occurrence {
    guard let index = place(of: name, from: 0) else { return .absent }
    return place(of: name, from: index + 1) == nil ? .once(text(at: index)) : .repeated
  }

  /// Returns the result of `body` for the bytes of the only value of `name`; `nil` if there is none or more than one.
  @inlinable
  public func withOnly<Result>(_ name: FieldName, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
    guard let index = place(of: name.bytes, from: 0), place(of: name.bytes, from: index + 1) == nil else { return nil }
    return withValue(at: index, body)
  }

  /// Returns whether exactly one field is called `name` and its value is `value`, without regard to case.
  public func isOnly(_ name: FieldName, _ value: StaticString) -> Bool {
    withOnly(name) { Self.isSame($0, UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount)) }
      ?? false
  }

  /// Returns the result of `body` for the bytes of the first value of `name`; `nil` if there is none.
  @discardableResult
  @inlinable
  public func withFirst<Result>(_ name: FieldName, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
    place(of: name.bytes, from: 0).map { withValue(at: $0, body) }
  }

  /// Returns whether the value of a field with one of `names` is not UTF-8.
  public func hasOpaqueValue(in names: FieldNameSet) -> Bool {
    var isFound = false
    forEachLine { line in
      if !line.isText, names.contains(line.name) { isFound = true }
    }
    return isFound
  }

  @inlinable
  func withValue<Result>(at index: Int, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    lines.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[places[index].value])) }
  }

  private func text(at index: Int) -> String { withValue(at: index) { String(decoding: $0, as: UTF8.self) } }

  /// Returns the index of the next field called `name`. Each request is searched for about two dozen names.
  @usableFromInline
  func place(of name: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
    let key = NameKey(name)
    // Most of the names that are searched for are those of fields that few requests have.
    guard marks & key.mark != 0 else { return nil }
    return places.withUnsafeBufferPointer { places in
      for index in start..<places.count where places[index].key == key {
        let isFound = lines.withUnsafeBufferPointer { lines in
          Self.isSame(UnsafeBufferPointer(rebasing: lines[places[index].name]), name)
        }
        if isFound { return index }
      }
      return nil
    }
  }

  /// Returns `true` if two field names are equal: ASCII, without regard to case (RFC 9110 section 5.1).
  public static func isSame(_ first: String, _ second: String) -> Bool {
    guard first.utf8.count == second.utf8.count else { return false }
    var (first, second) = (first, second)
    return first.withUTF8 { first in second.withUTF8 { isSame(first, $0) } }
  }

  private static func isSame(_ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>) -> Bool {
    guard first.count == second.count else { return false }
    guard let start = first.baseAddress, let other = second.baseAddress else { return true }
    // Most senders write names in the same way.
    if memcmp(start, other, first.count) == 0 { return true }
    for index in first.indices where first[index].lowercasedASCII != second[index].lowercasedASCII { return false }
    return true
  }
}
