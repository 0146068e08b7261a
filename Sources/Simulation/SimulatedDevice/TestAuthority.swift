public import ByteCoding
public import Cryptography

/// Everything that a development gate and its simulated devices trust instead of Apple, Google and a public TLS authority.
///
/// Its roots prove nothing about real devices. A gate accepts them only if its configuration names them, and never
/// together with an app in environment production.
public struct TestAuthority: Sendable {
  static let organization = "Sallyport development"

  /// The app whose devices this authority vouches for, `TEAM.bundle`.
  public let appID: String
  /// Signs `attestationIntermediate`; replaces "Apple App Attestation Root CA". P-384.
  public let attestationRoot: SigningIdentity
  /// Signs the leaf of each attestation. P-384.
  public let attestationIntermediate: SigningIdentity
  /// Stands for "Apple Root CA - G3". P-384.
  public let receiptRoot: SigningIdentity
  /// The authority that issues the signer of receipts.
  public let receiptIntermediate: SigningIdentity
  /// Signs receipts; its certificate has the marker. P-256.
  public let receiptSigner: SigningIdentity
  /// What vouches for simulated Android devices; `nil` in a folder of a version that had none.
  public internal(set) var android: AndroidAuthority?
  /// Signs the gate's own certificate. P-256.
  public let tlsAuthority: SigningIdentity
  /// The gate's TLS certificate, for loopback and the names that were given. P-256.
  public var server: SigningIdentity

  init(
    appID: String, attestationRoot: SigningIdentity, attestationIntermediate: SigningIdentity,
    receiptRoot: SigningIdentity, receiptIntermediate: SigningIdentity, receiptSigner: SigningIdentity,
    tlsAuthority: SigningIdentity, server: SigningIdentity, android: AndroidAuthority?
  ) {
    self.appID = appID
    self.attestationRoot = attestationRoot
    self.attestationIntermediate = attestationIntermediate
    self.receiptRoot = receiptRoot
    self.receiptIntermediate = receiptIntermediate
    self.receiptSigner = receiptSigner
    self.tlsAuthority = tlsAuthority
    self.server = server
    self.android = android
  }

  /// The Android edition of the app `appID`.
  public var androidApp: AndroidApp { AndroidApp(appID: appID) }

  /// A new authority for the app `appID`, with new keys. It is valid from a day before `instant`, so that clocks may
  /// differ, for ten years; the server's certificate is valid for a year.
  ///
  /// - Parameter names: Those of the server, in addition to those of loopback.
  public init(appID: String, names: ServerNames = .loopback, at instant: Timestamp) throws(CryptographyError) {
    let validity = Validity(from: instant, years: 10)
    let attestationRoot = try SigningIdentity.root { .root("Simulated App Attestation Root CA", $0, validity) }
    let receiptRoot = try SigningIdentity.root { .root("Simulated Receipt Root CA", $0, validity) }
    let receiptIntermediate = try receiptRoot.issue(.p256) {
      .intermediate("Simulated Receipt CA 1", $0, under: receiptRoot, validity, marker: .receiptAuthorityMarker)
    }
    let tlsAuthority = try SigningIdentity.root { .root("Development TLS CA", $0, validity) }
    self.init(
      appID: appID,
      attestationRoot: attestationRoot,
      attestationIntermediate: try attestationRoot.issue(.p384) {
        .intermediate("Simulated App Attestation CA 1", $0, under: attestationRoot, validity)
      },
      receiptRoot: receiptRoot,
      receiptIntermediate: receiptIntermediate,
      receiptSigner: try receiptIntermediate.issue(.p256) { .receiptSigner($0, under: receiptIntermediate, validity) },
      tlsAuthority: tlsAuthority,
      server: try Self.serverIdentity(names, under: tlsAuthority, at: instant),
      android: try AndroidAuthority(at: instant))
  }

  /// Replaces the server's certificate by one that is valid for a year from `instant`.
  ///
  /// - Parameter names: Those of the server, in addition to those of loopback.
  public mutating func renewServer(
    names: ServerNames = .loopback, at instant: Timestamp
  ) throws(CryptographyError) {
    server = try Self.serverIdentity(names, under: tlsAuthority, at: instant)
  }

  /// A TLS client's certificate for the debug path, valid for a year.
  public func clientIdentity(commonName: String, at instant: Timestamp) throws(CryptographyError) -> SigningIdentity {
    try tlsAuthority.issue(.p256) { .tlsClient(commonName, $0, under: tlsAuthority, Validity(from: instant, years: 1)) }
  }

  private static func serverIdentity(
    _ names: ServerNames, under authority: SigningIdentity, at instant: Timestamp
  ) throws(CryptographyError) -> SigningIdentity {
    try authority.issue(.p256) { .tlsServer(names, $0, under: authority, Validity(from: instant, years: 1)) }
  }
}
