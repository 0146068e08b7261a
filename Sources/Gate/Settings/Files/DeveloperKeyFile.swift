internal import ByteCoding

/// The private key of a developer account, as Apple offers it for download: PEM with PKCS #8 and a key on P-256.
enum DeveloperKeyFile {
  /// Describes why the file `name` has no such key, as far as its beginning shows; `nil` if it seems to have one.
  static func violation(in bytes: [UInt8], of name: String) -> String? {
    let labels = PEM.labels(in: bytes)
    if labels.contains("ENCRYPTED PRIVATE KEY")
      || String(decoding: bytes, as: UTF8.self).contains("Proc-Type: 4,ENCRYPTED")
    {
      return "the private key in \(name) is encrypted; the gate cannot ask for its passphrase"
    }
    if labels.contains("RSA PRIVATE KEY") { return "\(name) has an RSA key, not one on P-256" }
    if labels.contains("EC PRIVATE KEY") {
      return "\(name) has a key that is not in PKCS #8 (openssl pkcs8 -topk8 -nocrypt converts it)"
    }
    guard labels.contains("PRIVATE KEY") else {
      return "\(name) contains no private key: no PEM block PRIVATE KEY"
    }
    guard let key = content(of: bytes) else { return "the private key in \(name) is not base64" }
    // The algorithm stands at the beginning (RFC 5208 section 5), and its parameters name the curve (RFC 5480).
    let head = key.prefix(40)
    if head.contains(OID.p256) { return nil }
    if head.contains(OID.rsa) { return "\(name) has an RSA key, not one on P-256" }
    return head.contains(OID.curve) ? "\(name) has a key on another curve than P-256" : "\(name) has no key on P-256"
  }

  private static func content(of bytes: [UInt8]) -> [UInt8]? {
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      .map { $0.drop { $0 == " " || $0 == "\t" } }
    let block = lines.drop { !$0.hasPrefix("-----BEGIN PRIVATE KEY-----") }.dropFirst()
      .prefix { !$0.hasPrefix("-----END") }
    return Base64.decode(block.joined().filter { !$0.isWhitespace })
  }

  /// Object identifiers in DER, with tag and length.
  private enum OID {
    static let rsa: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
    static let curve: [UInt8] = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    static let p256: [UInt8] = [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
  }
}
