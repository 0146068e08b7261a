internal import ByteCoding
internal import Cryptography

/// The certificate that an attestation is built around.
enum AttestationLeaf {
  static func template(
    publicKey: P256PublicKey, app: SimulatedApp, nonce: [UInt8], at instant: Timestamp
  ) -> CertificateTemplate {
    var template = CertificateTemplate(
      subject: DistinguishedName(
        .commonName(Hex.encode(SHA256.hash(publicKey.x963))), .organizationalUnit("AAA Certification"),
        .organization(TestAuthority.organization), .state("California")),
      subjectPublicKeyInfo: publicKey.spki,
      notBefore: instant.advanced(by: .seconds(-86400)),
      notAfter: instant.advanced(by: .seconds(2 * 86400)))
    // Apple numbers its leaves by the milliseconds of the clock.
    template.serialNumber = withUnsafeBytes(of: UInt64(max(1, instant.milliseconds)).bigEndian) { Array($0) }
    template.extensions = [
      .basicConstraints(isAuthority: false),
      .keyUsage([.digitalSignature, .nonRepudiation, .keyEncipherment, .dataEncipherment]),
      .extendedKeyUsage([.appAttestPurpose]),
      CertificateExtension(.appAttestApp, value: application(app)),
      CertificateExtension(.appAttestSystem, value: system),
      CertificateExtension(.appAttestNonce, value: nonceValue(nonce)),
    ]
    return template
  }

  /// `3024A1220420` and 32 bytes.
  static func nonceValue(_ nonce: [UInt8]) -> [UInt8] { DER.sequence(DER.context(1, DER.octetString(nonce))) }

  /// The app in Apple's form: `[4]` contains integers, `[1204]` the app ID. Only the app ID is imitated here.
  private static func application(_ app: SimulatedApp) -> [UInt8] {
    let appID = DER.octetString(Array(app.appID.utf8))
    return DER.sequence([0xBF, 0x89, 0x34] + Array(DER.element(.sequence, appID).dropFirst()))
  }

  /// The system in Apple's form: `[1400]` contains its version.
  private static var system: [UInt8] {
    let version = DER.octetString(Array("27.0".utf8))
    return DER.sequence([0xBF, 0x8A, 0x78] + Array(DER.element(.sequence, version).dropFirst()))
  }
}
