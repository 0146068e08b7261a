extension ASN1Reader {
  /// An element `[number]` EXPLICIT, with any number.
  public struct ExplicitElement: Sendable {
    /// The number of the context-specific tag.
    public let number: Int
    /// The content: one element, unless the structure is malformed.
    public let content: ASN1Reader
    /// The bytes of the content.
    public let bytes: ArraySlice<UInt8>
  }

  /// The highest number of a tag that is read: three octets of the long form.
  public static let highestTagNumber = (1 << 21) - 1

  /// Reads the next element, which must have a constructed, context-specific tag: `[number]` EXPLICIT.
  ///
  /// Numbers from 31 on have the long form (X.690 section 8.1.2.4), as few octets as possible. Smaller ones must have
  /// the short form.
  public mutating func nextExplicit() throws(ASN1Error) -> ExplicitElement {
    let tag = ASN1Tag(octet: try octet())
    guard tag.octet & 0xE0 == 0xA0 else { throw .unexpectedTag(expected: .context(0), found: tag) }
    let number = tag.hasLongForm ? try longNumber() : Int(tag.octet & 0x1F)
    let range = try content(of: tag, depth: 0)
    return ExplicitElement(
      number: number, content: ASN1Reader(bytes: bytes, range: range, rules: rules), bytes: bytes[range])
  }

  private mutating func longNumber() throws(ASN1Error) -> Int {
    var number = 0
    while true {
      let octet = try octet()
      guard number > 0 || octet != 0x80 else { throw .malformed("a tag number with leading zeros") }
      number = number << 7 | Int(octet & 0x7F)
      guard number <= Self.highestTagNumber else { throw .longTag }
      if octet < 0x80 { break }
    }
    guard number > 30 else { throw .malformed("the tag number \(number) in the long form") }
    return number
  }
}
