/// ECDSA signatures on P-256 in the form that JOSE wants: r, then s, with 32 bytes each (RFC 7518 section 3.4).
enum FixedWidthSignature {
  private static let width = 32

  /// Converts a DER `ECDSA-Sig-Value` (RFC 3279) to fixed width; `nil` unless it contains two integers of at most 32
  /// bytes.
  static func bytes(der: [UInt8]) -> [UInt8]? {
    do throws(ASN1Error) {
      var reader = ASN1Reader(der)
      var integers = try reader.enter(.sequence)
      let parts = [try integers.next(.integer).content, try integers.next(.integer).content]
      try integers.end()
      try reader.end()
      var bytes: [UInt8] = []
      bytes.reserveCapacity(2 * width)
      for part in parts {
        // DER puts a zero before a number whose first bit is set, or it would be negative.
        let number = part.drop { $0 == 0 }
        guard number.count <= width, (part.first ?? 0x80) < 0x80 else { return nil }
        bytes.append(contentsOf: repeatElement(0, count: width - number.count))
        bytes.append(contentsOf: number)
      }
      return bytes
    } catch {
      return nil
    }
  }

  /// Converts a signature of fixed width to DER; `nil` unless it has 64 bytes.
  static func der(bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count == 2 * width else { return nil }
    var content: [UInt8] = []
    for part in [bytes[..<width], bytes[width...]] {
      var number = Array(part.drop { $0 == 0 })
      // DER puts a zero before a number whose first bit is set, or it would be negative.
      if number.first.map({ $0 >= 0x80 }) ?? true { number.insert(0, at: 0) }
      content += [0x02, UInt8(number.count)] + number
    }
    // At most 70 bytes, so that the length is one byte.
    return [0x30, UInt8(content.count)] + content
  }
}
