/// The rule of the encoding (X.690) or of the expected structure that bytes break.
public enum ASN1Error: Error, Sendable, Hashable {
  /// The length of an element exceeds the remaining bytes.
  case truncated
  /// Bytes follow where the structure is complete.
  case trailingBytes(Int)
  /// A length of more octets than it needs, or of more than four.
  case lengthNotMinimal
  /// An indefinite length where DER is required, or on a primitive element.
  case indefiniteLength
  /// Tag numbers above 30 occur nowhere in the structures that are read here.
  case longTag
  /// Nested deeper than `ASN1Reader.maximumDepth`.
  case tooDeep
  /// An element has a different tag than the structure requires here.
  case unexpectedTag(expected: ASN1Tag, found: ASN1Tag)
  /// The element lacks or has content that its type does not allow.
  case malformed(String)
}

/// The identifier octet of an element: class, constructed bit and number.
public struct ASN1Tag: Sendable, Hashable {
  /// The identifier octet: class, form and number in one byte.
  public let octet: UInt8
  /// Creates a tag from its identifier octet.
  public init(octet: UInt8) { self.octet = octet }

  /// The end of contents of an indefinite length (X.690 section 8.1.5).
  public static let endOfContents = ASN1Tag(octet: 0x00)
  /// BOOLEAN.
  public static let boolean = ASN1Tag(octet: 0x01)
  /// INTEGER.
  public static let integer = ASN1Tag(octet: 0x02)
  /// BIT STRING, primitive.
  public static let bitString = ASN1Tag(octet: 0x03)
  /// OCTET STRING, primitive.
  public static let octetString = ASN1Tag(octet: 0x04)
  /// NULL.
  public static let null = ASN1Tag(octet: 0x05)
  /// OBJECT IDENTIFIER.
  public static let objectIdentifier = ASN1Tag(octet: 0x06)
  /// ENUMERATED.
  public static let enumerated = ASN1Tag(octet: 0x0A)
  /// UTF8String.
  public static let utf8String = ASN1Tag(octet: 0x0C)
  /// UTCTime.
  public static let utcTime = ASN1Tag(octet: 0x17)
  /// GeneralizedTime.
  public static let generalizedTime = ASN1Tag(octet: 0x18)
  /// OCTET STRING in several parts (BER only).
  public static let constructedOctetString = ASN1Tag(octet: 0x24)
  /// SEQUENCE and SEQUENCE OF.
  public static let sequence = ASN1Tag(octet: 0x30)
  /// SET and SET OF.
  public static let set = ASN1Tag(octet: 0x31)

  /// `[number]`, constructed: an explicit tag, or an implicit one over a constructed type. `number` is at most 30.
  public static func context(_ number: UInt8) -> ASN1Tag { ASN1Tag(octet: 0xA0 | number & 0x1F) }

  /// Whether the content consists of elements.
  public var isConstructed: Bool { octet & 0x20 != 0 }
  var hasLongForm: Bool { octet & 0x1F == 0x1F }
}

extension ASN1Tag: CustomStringConvertible {
  public var description: String { (octet < 16 ? "0x0" : "0x") + String(octet, radix: 16) }
}
