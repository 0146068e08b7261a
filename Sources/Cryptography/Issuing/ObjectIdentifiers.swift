extension ObjectIdentifier {
  /// For the constants of this file alone: arcs that X.660 allows.
  private init(constant dotted: String) {
    guard let identifier = ObjectIdentifier(dotted) else {
      // Each of the constants below is used by a test of the certificates and messages that hold it.
      preconditionFailure("not an object identifier: \(dotted)")
    }
    self = identifier
  }

  static let ecdsaWithSHA256 = ObjectIdentifier(constant: "1.2.840.10045.4.3.2")
  static let ecdsaWithSHA384 = ObjectIdentifier(constant: "1.2.840.10045.4.3.3")
  static let sha256 = ObjectIdentifier(constant: "2.16.840.1.101.3.4.2.1")
  static let cmsData = ObjectIdentifier(constant: "1.2.840.113549.1.7.1")
  static let cmsSignedData = ObjectIdentifier(constant: "1.2.840.113549.1.7.2")

  static let commonName = ObjectIdentifier(constant: "2.5.4.3")
  static let countryName = ObjectIdentifier(constant: "2.5.4.6")
  static let stateOrProvinceName = ObjectIdentifier(constant: "2.5.4.8")
  static let organizationName = ObjectIdentifier(constant: "2.5.4.10")
  static let organizationalUnitName = ObjectIdentifier(constant: "2.5.4.11")

  static let subjectKeyIdentifier = ObjectIdentifier(constant: "2.5.29.14")
  static let keyUsage = ObjectIdentifier(constant: "2.5.29.15")
  static let subjectAlternativeName = ObjectIdentifier(constant: "2.5.29.17")
  static let basicConstraints = ObjectIdentifier(constant: "2.5.29.19")
  static let authorityKeyIdentifier = ObjectIdentifier(constant: "2.5.29.35")
  static let extendedKeyUsage = ObjectIdentifier(constant: "2.5.29.37")
  static let serverAuthentication = ObjectIdentifier(constant: "1.3.6.1.5.5.7.3.1")
  static let clientAuthentication = ObjectIdentifier(constant: "1.3.6.1.5.5.7.3.2")
}
