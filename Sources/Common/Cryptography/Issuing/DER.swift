public import ByteCoding

/// Writes the distinguished encoding of ASN.1 (X.690), and the one indefinite form that Apple's receipts have.
public enum DER {
  /// An element with `tag` around `content`.
  public static func element(_ tag: ASN1Tag, _ content: [UInt8]) -> [UInt8] {
    [tag.octet] + length(content.count) + content
  }

  /// An element of indefinite length, which is BER: `tag` must be a constructed one.
  public static func indefinite(_ tag: ASN1Tag, _ parts: [UInt8]...) -> [UInt8] {
    [tag.octet, 0x80] + parts.joined() + [0, 0]
  }

  /// Encodes a SEQUENCE of encoded elements.
  public static func sequence(_ parts: [UInt8]...) -> [UInt8] { element(.sequence, Array(parts.joined())) }

  /// A SEQUENCE OF, in the given order.
  public static func sequence(of items: [[UInt8]]) -> [UInt8] { element(.sequence, Array(items.joined())) }

  /// A SET OF, in the given order: sorting is the caller's, since not every signer sorts.
  public static func set(of items: [[UInt8]]) -> [UInt8] { element(.set, Array(items.joined())) }

  /// `[number]` around whole elements.
  public static func context(_ number: UInt8, _ parts: [UInt8]...) -> [UInt8] {
    element(.context(number), Array(parts.joined()))
  }

  /// `[number]` EXPLICIT around whole elements, with any number: from 31 on in the long form (X.690 section 8.1.2.4).
  public static func explicit(_ number: Int, _ parts: [UInt8]...) -> [UInt8] {
    let content = Array(parts.joined())
    guard number > 30 else { return element(.context(UInt8(max(0, number))), content) }
    return [0xBF] + ObjectIdentifier.base128(UInt64(number)) + length(content.count) + content
  }

  /// Encodes an ENUMERATED between 0 and 127.
  public static func enumerated(_ value: UInt8) -> [UInt8] { element(.enumerated, [value & 0x7F]) }

  /// Encodes a BOOLEAN.
  public static func boolean(_ value: Bool) -> [UInt8] { element(.boolean, [value ? 0xFF : 0]) }

  /// Encodes a non-negative INTEGER.
  public static func integer(_ value: UInt64) -> [UInt8] {
    integer(magnitude: (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) })
  }

  /// A non-negative INTEGER from its big-endian bytes.
  public static func integer(magnitude: [UInt8]) -> [UInt8] {
    let digits = magnitude.drop { $0 == 0 }
    let needsZero = digits.first.map { $0 >= 0x80 } ?? true
    return element(.integer, (needsZero ? [0] : []) + digits)
  }

  /// Encodes an OCTET STRING.
  public static func octetString(_ bytes: [UInt8]) -> [UInt8] { element(.octetString, bytes) }

  /// A BIT STRING whose bits fill `bytes`, except for the last `unused` ones.
  public static func bitString(_ bytes: [UInt8], unused: UInt8 = 0) -> [UInt8] {
    element(.bitString, [unused] + bytes)
  }

  /// An encoded NULL.
  public static let null = element(.null, [])

  /// Encodes an OBJECT IDENTIFIER.
  public static func objectIdentifier(_ identifier: ObjectIdentifier) -> [UInt8] {
    element(.objectIdentifier, identifier.encoded)
  }

  /// Encodes a UTF8String.
  public static func utf8String(_ text: String) -> [UInt8] { element(.utf8String, Array(text.utf8)) }

  /// Encodes a PrintableString. The characters are not checked.
  public static func printableString(_ text: String) -> [UInt8] { element(ASN1Tag(octet: 0x13), Array(text.utf8)) }

  /// A time of a certificate, in whole seconds: UTCTime up to 2049, GeneralizedTime from 2050 on (RFC 5280 section
  /// 4.1.2.5).
  public static func time(_ instant: Timestamp) -> [UInt8] {
    let text = Timestamp(seconds: instant.seconds).description.filter(\.isNumber)
    let isShort = ("1950"..<"2050").contains(String(text.prefix(4)))
    return element(isShort ? .utcTime : .generalizedTime, Array((text.dropFirst(isShort ? 2 : 0) + "Z").utf8))
  }

  private static func length(_ count: Int) -> [UInt8] {
    if count < 0x80 { return [UInt8(count)] }
    let octets = withUnsafeBytes(of: UInt64(count).bigEndian) { Array($0.drop { $0 == 0 }) }
    return [0x80 | UInt8(octets.count)] + octets
  }
}
