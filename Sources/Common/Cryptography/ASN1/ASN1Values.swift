internal import ByteCoding

extension ASN1Reader {
  /// An INTEGER that fits into 63 bits and is not negative.
  public mutating func unsignedInteger() throws(ASN1Error) -> Int {
    guard let number = Int(exactly: try unsignedInteger64()) else { throw .malformed("an integer of 64 bits") }
    return number
  }

  /// An INTEGER that fits into 64 bits and is not negative.
  public mutating func unsignedInteger64() throws(ASN1Error) -> UInt64 {
    let content = try next(.integer).content
    // Nine octets only for numbers whose highest bit is set, after the octet of the sign.
    guard let sign = content.first, content.count <= 8 || content.count == 9 && sign == 0 else {
      throw .malformed("an integer of \(content.count) bytes")
    }
    guard sign < 0x80 else { throw .malformed("a negative integer") }
    guard content.count == 1 || sign != 0 || content[content.startIndex + 1] >= 0x80 else {
      throw .malformed("an integer with leading zeros")
    }
    return content.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// An ENUMERATED between 0 and 127, the only numbers that the structures here have.
  public mutating func enumerated() throws(ASN1Error) -> Int {
    let content = try next(.enumerated).content
    guard content.count == 1, let number = content.first, number < 0x80 else {
      throw .malformed("an enumerated value of other than 0 to 127")
    }
    return Int(number)
  }

  /// The octet of a BOOLEAN. DER has only 0 for FALSE and 255 for TRUE; the caller decides about others.
  public mutating func booleanOctet() throws(ASN1Error) -> UInt8 {
    let content = try next(.boolean).content
    guard content.count == 1, let octet = content.first else {
      throw .malformed("a boolean of \(content.count) bytes")
    }
    return octet
  }

  /// Reads a NULL.
  public mutating func null() throws(ASN1Error) {
    guard try next(.null).content.isEmpty else { throw .malformed("a NULL with content") }
  }

  /// The content of a primitive OCTET STRING.
  public mutating func octetString() throws(ASN1Error) -> ArraySlice<UInt8> { try next(.octetString).content }

  /// The bytes of a BIT STRING whose bits fill them.
  public mutating func bitString() throws(ASN1Error) -> ArraySlice<UInt8> {
    let content = try next(.bitString).content
    guard content.first == 0 else { throw .malformed("a bit string that does not fill its bytes") }
    return content.dropFirst()
  }

  /// Reads an OBJECT IDENTIFIER.
  public mutating func objectIdentifier() throws(ASN1Error) -> ObjectIdentifier {
    ObjectIdentifier(encoded: Array(try next(.objectIdentifier).content))
  }
}

/// An OBJECT IDENTIFIER, kept and compared as the content octets of its DER.
public struct ObjectIdentifier: Sendable, Hashable {
  let encoded: [UInt8]

  init(encoded: [UInt8]) { self.encoded = encoded }

  /// The identifier with the given arcs, two at least; `nil` if X.660 does not allow them.
  public init?(_ dotted: String) {
    let parts = dotted.split(separator: ".", omittingEmptySubsequences: false)
    let arcs = parts.compactMap { UInt32($0) }
    guard arcs.count == parts.count, arcs.count >= 2, arcs[0] < 3, arcs[0] == 2 || arcs[1] < 40 else { return nil }
    var encoded = Self.base128(UInt64(arcs[0]) * 40 + UInt64(arcs[1]))
    for arc in arcs[2...] { encoded += Self.base128(UInt64(arc)) }
    self.encoded = encoded
  }

  static func base128(_ arc: UInt64) -> [UInt8] {
    var digits = [UInt8(truncatingIfNeeded: arc & 0x7F)]
    var rest = arc >> 7
    while rest > 0 {
      digits.insert(UInt8(truncatingIfNeeded: rest & 0x7F) | 0x80, at: 0)
      rest >>= 7
    }
    return digits
  }
}

extension ObjectIdentifier: CustomStringConvertible {
  /// The arcs with dots between them; hex if the octets are not an identifier.
  public var description: String {
    var arcs: [UInt64] = []
    var arc: UInt64 = 0
    for octet in encoded {
      guard arc < 1 << 56 else { return "0x" + Hex.encode(encoded) }
      arc = arc << 7 | UInt64(octet & 0x7F)
      if octet < 0x80 {
        arcs.append(arc)
        arc = 0
      }
    }
    guard let last = encoded.last, last < 0x80, let first = arcs.first else { return "0x" + Hex.encode(encoded) }
    let root = min(first / 40, 2)
    return ([root, first - root * 40] + arcs.dropFirst()).map(String.init).joined(separator: ".")
  }
}
