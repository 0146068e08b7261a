internal import ByteCoding

/// Finds certificates in a PEM file (RFC 7468) without verifying them.
enum PEMCertificates {
  /// Whether `bytes` contain a block `CERTIFICATE`, and each such block contains one DER value.
  static func areWellFormed(in bytes: [UInt8]) -> Bool {
    var count = 0
    var base64: String?
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      let line = line.trimmingSuffix { $0 == " " || $0 == "\t" }
      if line == "-----BEGIN CERTIFICATE-----" {
        guard base64 == nil else { return false }
        base64 = ""
      } else if line == "-----END CERTIFICATE-----" {
        guard let der = base64.flatMap({ Base64.decode($0) }), isSequence(der) else { return false }
        count += 1
        base64 = nil
      } else {
        base64?.append(contentsOf: line)
      }
    }
    return count > 0 && base64 == nil
  }

  /// Whether `der` is a SEQUENCE whose length is that of the rest.
  private static func isSequence(_ der: [UInt8]) -> Bool {
    guard der.count > 2, der[0] == 0x30 else { return false }
    guard der[1] >= 0x80 else { return Int(der[1]) == der.count - 2 }
    let digits = Int(der[1] & 0x7F)
    guard (1...4).contains(digits), der.count > 2 + digits else { return false }
    return der[2..<2 + digits].reduce(0) { $0 << 8 | Int($1) } == der.count - 2 - digits
  }
}

extension Substring {
  fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
    var text = self
    while let last = text.last, predicate(last) { text.removeLast() }
    return text
  }
}
