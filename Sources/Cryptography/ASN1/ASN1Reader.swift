/// Reads the elements of an ASN.1 encoding from front to back.
///
/// DER by default; `.ber` also takes indefinite lengths, as signers that stream write them. Lengths are minimal in both:
/// a value has one spelling as far as the encoding rules leave room for that.
public struct ASN1Reader: Sendable {
  /// Which encoding rules (X.690) hold.
  public enum Rules: Sendable, Hashable {
    case der
    case ber
  }

  /// How deep indefinite lengths may nest.
  public static let maximumDepth = 16

  /// One element.
  public struct Element: Sendable, Hashable {
    public let tag: ASN1Tag
    /// What is between the length and the end of the element.
    public let content: ArraySlice<UInt8>
    /// The whole element, untouched: what a signature or a comparison covers.
    public let encoding: ArraySlice<UInt8>
  }

  private var rest: ArraySlice<UInt8>
  private let rules: Rules

  public init(_ bytes: some Collection<UInt8>, rules: Rules = .der) {
    rest = ArraySlice(bytes)
    self.rules = rules
  }

  public var isAtEnd: Bool { rest.isEmpty }

  /// The tag of the next element, if there is one.
  public var nextTag: ASN1Tag? { rest.first.map(ASN1Tag.init(octet:)) }

  /// The next element, whatever it is.
  public mutating func next() throws(ASN1Error) -> Element { try next(depth: 0) }

  /// The next element, which must have `tag`.
  public mutating func next(_ tag: ASN1Tag) throws(ASN1Error) -> Element {
    if let found = nextTag, found != tag { throw .unexpectedTag(expected: tag, found: found) }
    return try next()
  }

  /// A reader of what is in the next element, which must have `tag`; under the same rules unless told otherwise.
  public mutating func enter(_ tag: ASN1Tag, rules: Rules? = nil) throws(ASN1Error) -> ASN1Reader {
    ASN1Reader(try next(tag).content, rules: rules ?? self.rules)
  }

  /// The next element if it has `tag`, else `nil`: for what is OPTIONAL.
  public mutating func nextIfPresent(_ tag: ASN1Tag) throws(ASN1Error) -> Element? {
    nextTag == tag ? try next() : nil
  }

  /// States that nothing may follow.
  public func end() throws(ASN1Error) {
    guard rest.isEmpty else { throw .trailingBytes(rest.count) }
  }

  private mutating func next(depth: Int) throws(ASN1Error) -> Element {
    guard depth <= Self.maximumDepth else { throw .tooDeep }
    let start = rest
    guard let octet = rest.popFirst() else { throw .truncated }
    let tag = ASN1Tag(octet: octet)
    guard !tag.hasLongForm else { throw .longTag }
    guard let length = try length() else {
      guard rules == .ber, tag.isConstructed else { throw .indefiniteLength }
      let content = try contentUpToEnd(depth: depth)
      return Element(tag: tag, content: content, encoding: start[start.startIndex..<rest.startIndex])
    }
    guard length <= rest.count else { throw .truncated }
    let content = rest.prefix(length)
    rest = rest.dropFirst(length)
    return Element(tag: tag, content: content, encoding: start[start.startIndex..<rest.startIndex])
  }

  /// The length octets (X.690 section 8.1.3); `nil` if the length is indefinite.
  private mutating func length() throws(ASN1Error) -> Int? {
    guard let first = rest.popFirst() else { throw .truncated }
    if first < 0x80 { return Int(first) }
    let octets = Int(first & 0x7F)
    if octets == 0 { return nil }
    guard octets <= 4 else { throw .lengthNotMinimal }
    var length = 0
    for _ in 0..<octets {
      guard let octet = rest.popFirst() else { throw .truncated }
      length = length << 8 | Int(octet)
    }
    guard length >= 0x80, length >= 1 << (8 * (octets - 1)) else { throw .lengthNotMinimal }
    return length
  }

  /// Skips the elements up to the end-of-contents octets, and those as well.
  private mutating func contentUpToEnd(depth: Int) throws(ASN1Error) -> ArraySlice<UInt8> {
    let start = rest
    while true {
      let end = rest.startIndex
      let element = try next(depth: depth + 1)
      guard element.tag == .endOfContents else { continue }
      guard element.content.isEmpty else { throw .malformed("end-of-contents octets with content") }
      return start[start.startIndex..<end]
    }
  }
}
