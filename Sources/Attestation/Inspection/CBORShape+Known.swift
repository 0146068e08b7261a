// The structures of App Attest: WebAuthn section 6.5.4, and Apple's "Validating apps that connect to your server".

extension CBORShape {
  /// What `DCAppAttestService.attestKey` returns.
  static let attestation = CBORShape.map([
    Member(key: "fmt", meaning: "the format of the statement; App Attest has apple-appattest"),
    Member(key: "attStmt", meaning: "the attestation statement: who vouches for the key", shape: statement),
    Member(
      key: "authData", meaning: "authenticator data: app, environment and key; the leaf's nonce covers these bytes",
      shape: .bytes(.authenticatorData(ofAttestation: true))),
  ])

  private static let statement = CBORShape.map([
    Member(
      key: "x5c", meaning: "the certificate chain of the key, without its root",
      shape: .array([
        Member(
          key: "leaf", meaning: "the certificate of the attested key, with the nonce in an extension",
          shape: .bytes(.der(.certificate))),
        Member(
          key: "intermediate", meaning: "the authority that issued the leaf", shape: .bytes(.der(.certificate))),
      ])),
    Member(
      key: "receipt", meaning: "Apple's receipt for the key; Apple exchanges it for newer ones",
      shape: .bytes(.receipt)),
  ])

  /// What `DCAppAttestService.generateAssertion` returns.
  static let assertion = CBORShape.map([
    Member(
      key: "signature",
      meaning: "ECDSA with SHA-256 of the SHA-256 of authenticatorData and the client data hash",
      shape: .bytes(.der(.signature))),
    Member(
      key: "authenticatorData", meaning: "app and counter; the signature covers these bytes",
      shape: .bytes(.authenticatorData(ofAttestation: false))),
  ])

  /// A public key (RFC 9052 section 7).
  static let publicKey = CBORShape.map(Member.ofKeys)

  /// The extensions of authenticator data.
  static let extensions = CBORShape.map([
    Member(
      key: "apple_validation_category_01",
      meaning: "how the app was installed, lowest byte first: 1 system, 2 TestFlight, 3 development, 4 App Store, "
        + "5 enterprise, 6 Developer ID, 10 other"),
    Member(key: "apple_bundle_version_01", meaning: "CFBundleVersion of the app"),
  ])
}

extension CBORShape.Member {
  /// The members of a COSE key, which are known by their numbers.
  static let ofKeys = [
    CBORShape.Member(key: "1", name: "kty", meaning: "the kind of the key: 2 is a curve with x and y"),
    CBORShape.Member(key: "3", name: "alg", meaning: "the algorithm: -7 is ECDSA with SHA-256"),
    CBORShape.Member(key: "-1", name: "crv", meaning: "the curve: 1 is P-256"),
    CBORShape.Member(key: "-2", name: "x", meaning: "a coordinate of the public key; the leaf has the same key"),
    CBORShape.Member(key: "-3", name: "y", meaning: "the other coordinate"),
    CBORShape.Member(key: "-4", name: "d", meaning: "a private key has no place here", isSecret: true),
  ]
}
