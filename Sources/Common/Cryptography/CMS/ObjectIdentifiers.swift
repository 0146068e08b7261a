extension ObjectIdentifier {
  /// 1.2.840.113549.1.7.1
  static let data = ObjectIdentifier(encoded: pkcs + [7, 1])
  /// 1.2.840.113549.1.7.2
  static let signedData = ObjectIdentifier(encoded: pkcs + [7, 2])
  /// 1.2.840.113549.1.9.3
  static let contentTypeAttribute = ObjectIdentifier(encoded: pkcs + [9, 3])
  /// 1.2.840.113549.1.9.4
  static let messageDigestAttribute = ObjectIdentifier(encoded: pkcs + [9, 4])
  /// 2.16.840.1.101.3.4.2.1
  static let sha256 = ObjectIdentifier(encoded: [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01])
  /// 2.16.840.1.101.3.4.2.2
  static let sha384 = ObjectIdentifier(encoded: [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02])
  /// 1.2.840.10045.4.3.2
  static let ecdsaWithSHA256 = ObjectIdentifier(encoded: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02])
  /// 1.2.840.10045.4.3.3
  static let ecdsaWithSHA384 = ObjectIdentifier(encoded: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x03])
  /// 1.2.840.113549.1.1.11
  static let rsaWithSHA256 = ObjectIdentifier(encoded: pkcs + [1, 11])
  /// 1.2.840.113549.1.1.1
  static let rsaKey = ObjectIdentifier(encoded: pkcs + [1, 1])
  /// 1.2.840.10045.2.1
  static let ellipticCurveKey = ObjectIdentifier(encoded: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01])

  /// 1.2.840.113549.1
  private static let pkcs: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01]
}
