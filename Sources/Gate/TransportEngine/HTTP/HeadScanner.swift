internal import ByteCoding
internal import Transport

/// Scans the bytes of a message head, checks its lines and notes where the fields are, without interpreting them.
///
/// It scans from left to right and stops at the first invalid byte. So the result does not depend on how many later
/// bytes have already arrived: the same head always gets the same fault.
///
/// The scanning methods return `false` if the bytes end before the part does.
struct HeadScanner {
  private let bytes: UnsafeBufferPointer<UInt8>
  private let limits: HeadLimits
  /// The beginning of paths whose rest is not checked.
  private let unread: StaticString?
  /// Whether white space before a colon is skipped: in responses alone (RFC 9112 section 5.1).
  private var skipsSpaceBeforeColon = false
  /// The index at which scanning stops; within `bytes`.
  private let end: Int
  /// The index of the next byte; at most `end`.
  private var position = 0
  /// The highest bits of the content that was scanned last, combined by OR: 0 if it is ASCII.
  private var contentBits: UInt64 = 0

  /// The maximum length of a method.
  private static let maxMethod = 32

  init(_ bytes: UnsafeBufferPointer<UInt8>, limits: HeadLimits, unread: StaticString? = nil) {
    self.bytes = bytes
    self.unread = unread
    self.limits = limits
    end = min(bytes.count, limits.bytes)
  }

  /// The position of a valid head.
  struct Extent: Sendable {
    /// The field lines, without the empty line.
    let fields: ScannedFields
    /// The total length in bytes, including the empty line.
    let length: Int
  }

  /// Returns the extent of a request head; `nil` while the head is incomplete and valid so far.
  mutating func request() throws(HeadError) -> Extent? {
    guard try requestLine() else { return try outOfBytes() }
    return try fieldLines()
  }

  /// Like `request()`, for a head that arrives in pieces: no line is scanned again that was complete before.
  ///
  /// - Parameter fields: The field lines that the scan of fewer of the same bytes found; `nil` for a first scan. If the
  ///   head is incomplete, those that are complete now; `nil` before the end of the request line.
  mutating func request(continuing fields: inout ScannedFields?) throws(HeadError) -> Extent? {
    var found: ScannedFields
    if let earlier = fields {
      found = earlier
      // The only reference, so that no list is copied when it grows.
      fields = nil
      position = found.range.upperBound
    } else {
      guard try requestLine() else { return try outOfBytes() }
      found = ScannedFields(at: position)
    }
    if let extent = try fieldLines(&found) { return extent }
    fields = found
    return nil
  }

  /// Returns the extent of a response head; `nil` while the head is incomplete and valid so far.
  mutating func response() throws(HeadError) -> Extent? {
    skipsSpaceBeforeColon = true
    guard try statusLine() else { return try outOfBytes() }
    return try fieldLines()
  }

  /// Whether the bytes begin with a complete and valid request line.
  mutating func hasRequestLine() -> Bool { (try? requestLine()) == true }

  private func outOfBytes() throws(HeadError) -> Extent? {
    if end == limits.bytes { throw .headLength }
    return nil
  }

  private var next: UInt8? {
    @inline(__always) get { position < end ? bytes[position] : nil }
  }

  /// Scans `text`; throws `fault` at any other byte.
  private mutating func literal(_ text: StaticString, else fault: HeadError) throws(HeadError) -> Bool {
    let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    for expected in text {
      guard let byte = next else { return false }
      if byte != expected { throw fault }
      position += 1
    }
    return true
  }
}

// MARK: - First lines

extension HeadScanner {
  /// Scans `method SP request-target SP HTTP-version CRLF` (RFC 9112 section 3).
  private mutating func requestLine() throws(HeadError) -> Bool {
    guard try method(), try target(), try literal("HTTP/1.1", else: .version), try literal("\r\n", else: .lineEnd)
    else { return false }
    return true
  }

  private mutating func method() throws(HeadError) -> Bool {
    while let byte = next {
      if byte == .space, position > 0 {
        position += 1
        return true
      }
      guard ByteSet.token.contains(byte) else { throw position == 0 ? .firstByte : .method }
      if position == Self.maxMethod { throw .method }
      position += 1
    }
    return false
  }

  private mutating func target() throws(HeadError) -> Bool {
    guard let first = next else { return false }
    if first.lowercasedASCII == UInt8(ascii: "h") { return try absoluteTarget() }
    guard try literal("/", else: .targetForm) else { return false }
    return try restOfTarget(from: position - 1, allowed: .sentPath)
  }

  /// Scans `"https://" authority path-abempty [ "?" query ]` (RFC 9112 section 3.2.2). The parser checks the authority.
  private mutating func absoluteTarget() throws(HeadError) -> Bool {
    for expected in "https://".utf8 {
      guard let byte = next else { return false }
      if byte.lowercasedASCII != expected { throw .targetForm }
      position += 1
    }
    while let byte = next {
      position += 1
      switch byte {
      case .slash: return try restOfTarget(from: position - 1, allowed: .sentPath)
      case .questionMark: return try restOfTarget(from: position - 1, allowed: .query)
      case .space: return true
      case .colon, UInt8(ascii: "["), UInt8(ascii: "]"): break
      default: if !ByteSet.hostName.contains(byte) { throw .targetAuthority }
      }
    }
    return false
  }

  /// Scans a path and a query up to the space after them.
  ///
  /// - Parameter start: The index of the slash or the question mark that begins them, which was just scanned.
  private mutating func restOfTarget(from start: Int, allowed first: ByteSet) throws(HeadError) -> Bool {
    var allowed = first
    while let byte = next {
      if allowed.contains(byte) {
        position += 1
        continue
      }
      position += 1
      switch byte {
      case .space: return true
      case .questionMark: allowed = .query
      case _ where byte > .space && byte != 0x7F && unread?.begins(bytes[start..<position]) == true: break
      case .percent: guard try hexDigit(), try hexDigit() else { return false }
      case .carriageReturn, .lineFeed: throw .version
      default: throw .targetCharacter
      }
    }
    return false
  }

  private mutating func hexDigit() throws(HeadError) -> Bool {
    guard let byte = next else { return false }
    if byte.hexDigitValue == nil { throw .targetEscape }
    position += 1
    return true
  }

  /// Scans `HTTP-version SP status-code SP [ reason-phrase ] CRLF` (RFC 9112 section 4) for HTTP/1.0 and HTTP/1.1. The
  /// second space may be missing if the reason phrase is.
  private mutating func statusLine() throws(HeadError) -> Bool {
    guard try literal("HTTP/1.", else: .statusLine), let minor = next else { return false }
    if minor != UInt8(ascii: "1"), minor != UInt8(ascii: "0") { throw .statusLine }
    position += 1
    guard try literal(" ", else: .statusLine), let hundreds = next else { return false }
    guard (UInt8(ascii: "1")...UInt8(ascii: "5")).contains(hundreds) else { throw .status }
    position += 1
    for _ in 0..<2 {
      guard let digit = next else { return false }
      guard digit.isDigit else { throw .status }
      position += 1
    }
    if next == .carriageReturn { return try content() }
    guard try literal(" ", else: .statusLine) else { return false }
    return try content()
  }
}

// MARK: - Field lines

extension HeadScanner {
  /// Scans `*( field-line CRLF ) CRLF` (RFC 9112 section 2.1).
  private mutating func fieldLines() throws(HeadError) -> Extent? {
    var fields = ScannedFields(at: position)
    return try fieldLines(&fields)
  }

  /// Adds the lines to `fields`.
  @inline(__always)
  private mutating func fieldLines(_ fields: inout ScannedFields) throws(HeadError) -> Extent? {
    while let byte = next {
      if byte == .carriageReturn {
        guard try literal("\r\n", else: .lineEnd) else { break }
        return Extent(fields: fields, length: position)
      }
      if fields.count == limits.fields { throw .fieldCount }
      let start = position
      guard let nameEnd = try fieldName() else { break }
      let valueStart = position
      guard try content() else { break }
      let value = trimmed(valueStart..<position - 2)
      fields.append(
        in: bytes, name: start..<nameEnd, value: value, lineEnd: position - 2,
        isText: contentBits == 0 || Self.isUTF8(UnsafeBufferPointer(rebasing: bytes[value])))
    }
    return try outOfBytes()
  }

  /// Returns the range of a value without the white space around it.
  private func trimmed(_ value: Range<Int>) -> Range<Int> {
    var (start, end) = (value.lowerBound, value.upperBound)
    while start < end, bytes[start] == .space || bytes[start] == .tab { start += 1 }
    while start < end, bytes[end - 1] == .space || bytes[end - 1] == .tab { end -= 1 }
    return start..<end
  }

  private static func isUTF8(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
    var validator = UTF8Validator()
    return validator.consume(value) && validator.isComplete
  }

  /// Scans `field-name ":"` (RFC 9112 section 5.1) and returns the end of the name; `nil` if the bytes end before the
  /// colon.
  private mutating func fieldName() throws(HeadError) -> Int? {
    let start = position
    skipUsualName()
    while let byte = next {
      if ByteSet.token.contains(byte) {
        position += 1
        continue
      }
      let isFirst = position == start
      position += 1
      switch byte {
      case .colon: if isFirst { throw .fieldNameMissing } else { return position - 1 }
      case .space, .tab:
        if isFirst { throw .foldedLine }
        guard skipsSpaceBeforeColon else { throw .spaceBeforeColon }
        let end = position - 1
        return try colonAfterSpace() ? end : nil
      case .lineFeed where isFirst: throw .lineEnd
      case .carriageReturn, .lineFeed: throw .colonMissing
      default: throw .fieldName
      }
    }
    return nil
  }

  /// Scans white space and a colon.
  private mutating func colonAfterSpace() throws(HeadError) -> Bool {
    while let byte = next {
      position += 1
      switch byte {
      case .colon: return true
      case .space, .tab: break
      case .carriageReturn, .lineFeed: throw .colonMissing
      default: throw .fieldName
      }
    }
    return false
  }

  /// Skips letters, digits and hyphens, of which almost all names consist.
  private mutating func skipUsualName() {
    while position + 8 <= end {
      let others = EightBytes(bytes, at: position).isUnusualInName
      position += EightBytes.first(in: others)
      if others != 0 { return }
    }
  }

  /// Scans a field value or a reason phrase, and the end of its line.
  private mutating func content() throws(HeadError) -> Bool {
    contentBits = 0
    while true {
      skipContent()
      guard let byte = next else { return false }
      switch byte {
      case .tab: position += 1
      case .carriageReturn: return try literal("\r\n", else: .lineEnd)
      case .lineFeed: throw .lineEnd
      default: throw byte == 0 ? .fieldNUL : .fieldValue
      }
    }
  }

  /// Skips content up to the next control character.
  private mutating func skipContent() {
    while position + 8 <= end {
      let group = EightBytes(bytes, at: position)
      let control = group.isLess(than: 0x20) | group.isEqual(to: 0x7F)
      guard control == 0 else {
        let count = EightBytes.first(in: control)
        contentBits |= group.isNotASCII & ((1 << (8 * count)) - 1)
        position += count
        return
      }
      contentBits |= group.isNotASCII
      position += 8
    }
    while let byte = next, byte.isFieldContent, byte != .tab {
      contentBits |= UInt64(byte & 0x80)
      position += 1
    }
  }
}
