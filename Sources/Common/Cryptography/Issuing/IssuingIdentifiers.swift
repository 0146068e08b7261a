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
  static let nameConstraints = ObjectIdentifier(encoded: [0x55, 0x1D, 30])
  static let listNumber = ObjectIdentifier(encoded: [0x55, 0x1D, 20])
  static let authorityKeyIdentifier = ObjectIdentifier(encoded: [0x55, 0x1D, 35])
  static let extendedKeyUsage = ObjectIdentifier(encoded: [0x55, 0x1D, 37])

  /// The attribute of a request that lists the requested extensions (RFC 2985 section 5.4.2): 1.2.840.113549.1.9.14.
  static let extensionRequest = ObjectIdentifier(
    encoded: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x0E])
  /// The extension that answers a challenge of ACME (RFC 8737 section 3): 1.3.6.1.5.5.7.1.31.
  static let acmeIdentifier = ObjectIdentifier(encoded: [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x1F])

  /// The purpose of a TLS server's certificate: 1.3.6.1.5.5.7.3.1.
  public static let tlsServer = ObjectIdentifier(encoded: [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01])
  /// The purpose of a TLS client's certificate: 1.3.6.1.5.5.7.3.2.
  public static let tlsClient = ObjectIdentifier(encoded: [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02])
}
