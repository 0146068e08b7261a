/// Reads the elements of an ASN.1 encoding from front to back.
///
/// DER by default. `.ber` also accepts indefinite lengths, which streaming signers write. Lengths must be minimal in
/// both, so that a value has as few encodings as the rules allow.
public struct ASN1Reader: Sendable {
  /// The encoding rules (X.690).
  public enum Rules: Sendable, Hashable {
    /// The Distinguished Encoding Rules.
    case der
    /// The Basic Encoding Rules.
    case ber
  }

  /// How deep indefinite lengths may nest.
  public static let maximumDepth = 16

  /// One element.
  public struct Element: Sendable, Hashable {
    /// The tag of the element.
    public let tag: ASN1Tag
    /// The bytes between the length and the end of the element.
    public let content: ArraySlice<UInt8>
    /// The whole unchanged element, for signatures and comparisons.
    public let encoding: ArraySlice<UInt8>
  }

  let bytes: [UInt8]
  /// The index of the next byte.
  package private(set) var position: Int
  private let limit: Int
  let rules: Rules

  /// Creates a reader at the first byte.
  public init(_ bytes: some Collection<UInt8>, rules: Rules = .der) {
    self.bytes = Array(bytes)
    position = 0
    limit = bytes.count
    self.rules = rules
  }

  /// A reader of `range` of `bytes`, which has it. The indices of elements are those of `bytes`.
  package init(bytes: [UInt8], range: Range<Int>, rules: Rules) {
    self.bytes = bytes
    position = range.lowerBound
    limit = range.upperBound
    self.rules = rules
  }

  /// Whether all elements have been read.
  public var isAtEnd: Bool { position == limit }

  /// The tag of the next element, if there is one.
  public var nextTag: ASN1Tag? { isAtEnd ? nil : ASN1Tag(octet: bytes[position]) }

  /// Reads the next element, with any tag.
  public mutating func next() throws(ASN1Error) -> Element {
    let start = position
    let (tag, content) = try advance(depth: 0)
    return Element(tag: tag, content: bytes[content], encoding: bytes[start..<position])
  }

  /// The next element, which must have `tag`.
  public mutating func next(_ tag: ASN1Tag) throws(ASN1Error) -> Element {
    try expect(tag)
    return try next()
  }

  /// Returns a reader for the content of the next element, which must have `tag`. Its rules are those of this reader
  /// unless given.
  public mutating func enter(_ tag: ASN1Tag, rules: Rules? = nil) throws(ASN1Error) -> ASN1Reader {
    try expect(tag)
    let rules = rules ?? self.rules
    // Under stricter rules the element itself has to obey them, too.
    var reader = ASN1Reader(bytes: bytes, range: position..<limit, rules: rules)
    let content = try reader.advance(depth: 0).content
    position = reader.position
    return ASN1Reader(bytes: bytes, range: content, rules: rules)
  }

  /// Reads the next element if it has `tag`; otherwise returns `nil`. For OPTIONAL elements.
  public mutating func nextIfPresent(_ tag: ASN1Tag) throws(ASN1Error) -> Element? {
    nextTag == tag ? try next() : nil
  }

  /// Requires that no bytes follow.
  public func end() throws(ASN1Error) {
    guard isAtEnd else { throw .trailingBytes(limit - position) }
  }

  private func expect(_ tag: ASN1Tag) throws(ASN1Error) {
    if let found = nextTag, found != tag { throw .unexpectedTag(expected: tag, found: found) }
  }

  /// Moves to the byte after the next element and returns the range of its content.
  private mutating func advance(depth: Int) throws(ASN1Error) -> (tag: ASN1Tag, content: Range<Int>) {
    guard depth <= Self.maximumDepth else { throw .tooDeep }
    let tag = ASN1Tag(octet: try octet())
    guard !tag.hasLongForm else { throw .longTag }
    return (tag, try content(of: tag, depth: depth))
  }

  /// Reads the length of an element whose tag was read, and moves to the byte after its content.
  mutating func content(of tag: ASN1Tag, depth: Int) throws(ASN1Error) -> Range<Int> {
    guard let length = try length() else {
      guard rules == .ber, tag.isConstructed else { throw .indefiniteLength }
      return try contentUpToEnd(depth: depth)
    }
    guard length <= limit - position else { throw .truncated }
    let start = position
    position += length
    return start..<position
  }

  mutating func octet() throws(ASN1Error) -> UInt8 {
    guard !isAtEnd else { throw .truncated }
    defer { position += 1 }
    return bytes[position]
  }

  /// The length octets (X.690 section 8.1.3); `nil` if the length is indefinite.
  private mutating func length() throws(ASN1Error) -> Int? {
    let first = try octet()
    if first < 0x80 { return Int(first) }
    let octets = Int(first & 0x7F)
    if octets == 0 { return nil }
    guard octets <= 4 else { throw .lengthNotMinimal }
    var length = 0
    for _ in 0..<octets { length = length << 8 | Int(try octet()) }
    guard length >= 0x80, length >= 1 << (8 * (octets - 1)) else { throw .lengthNotMinimal }
    return length
  }

  /// Skips the elements up to the end-of-contents octets, and those as well.
  private mutating func contentUpToEnd(depth: Int) throws(ASN1Error) -> Range<Int> {
    let start = position
    while true {
      let end = position
      let (tag, content) = try advance(depth: depth + 1)
      guard tag == .endOfContents else { continue }
      guard content.isEmpty else { throw .malformed("end-of-contents octets with content") }
      return start..<end
    }
  }
}
