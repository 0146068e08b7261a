extension ObjectIdentifier {
  // Attributes of names: 2.5.4.
  static let commonName = ObjectIdentifier(encoded: [0x55, 0x04, 3])
  static let countryName = ObjectIdentifier(encoded: [0x55, 0x04, 6])
  static let stateOrProvinceName = ObjectIdentifier(encoded: [0x55, 0x04, 8])
  static let organizationName = ObjectIdentifier(encoded: [0x55, 0x04, 10])
  static let organizationalUnitName = ObjectIdentifier(encoded: [0x55, 0x04, 11])

  // Extensions: 2.5.29.
  static let subjectKeyIdentifier = ObjectIdentifier(encoded: [0x55, 0x1D, 14])
  static let keyUsage = ObjectIdentifier(encoded: [0x55, 0x1D, 15])
  static let subjectAlternativeName = ObjectIdentifier(encoded: [0x55, 0x1D, 17])
  static let basicConstraints = ObjectIdentifier(encoded: [0x55, 0x1D, 19])
  static let authorityKeyIdentifier = ObjectIdentifier(encoded: [0x55, 0x1D, 35])
  static let extendedKeyUsage = ObjectIdentifier(encoded: [0x55, 0x1D, 37])

  /// The purpose of a TLS server's certificate: 1.3.6.1.5.5.7.3.1.
  public static let tlsServer = ObjectIdentifier(encoded: [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01])
  /// The purpose of a TLS client's certificate: 1.3.6.1.5.5.7.3.2.
  public static let tlsClient = ObjectIdentifier(encoded: [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02])
}
