public import ByteCoding
internal import CBOR
public import Cryptography

/// Makes attestation objects as an iPhone and Apple's servers make them, under a simulated root.
public struct AttestationMint: Sendable {
  /// The authority that issues the certificates.
  public let authority: TestAuthority
  /// The app that the attestations are for.
  public let app: SimulatedApp
  /// The name of the device in receipts; `nil` for a new device with each attestation.
  public var device: SimulatedDeviceName?
  /// The faults of the objects; by default there are none.
  public var alterations = AttestationAlterations()

  /// Creates a mint without alterations.
  public init(authority: TestAuthority, app: SimulatedApp) {
    self.authority = authority
    self.app = app
  }

  /// The attestation object of `key`, bound to `clientDataHash`, made at `instant`.
  ///
  /// The leaf is valid from a day before to two days after, as Apple's are, and the receipt is created a fraction of a
  /// second later.
  public func attestation(
    of key: P256PrivateKey, clientDataHash: [UInt8], at instant: Timestamp
  ) throws(CryptographyError) -> [UInt8] {
    let point = key.publicKey.x963
    let credential = SimulatedAuthenticatorData.Credential(x963: point, environment: app.environment)
    var authenticatorData = SimulatedAuthenticatorData(app: app, signCount: 0, credential: credential)
    alterations.authenticatorData(&authenticatorData)

    let nonce = SHA256.hash(authenticatorData.encoded, clientDataHash)
    var template = AttestationLeaf.template(publicKey: key.publicKey, app: app, nonce: nonce, at: instant)
    alterations.leaf(&template)
    let issuer = alterations.leafIssuer ?? authority.attestationIntermediate
    let leaf = try template.signed(by: issuer.certificate, key: issuer.key, digest: .sha256)

    let receipt = try receipt(leaf: leaf, clientDataHash: clientDataHash, at: instant)
    var statement = AttestationStatement(
      chain: [leaf.der, issuer.certificate.der], receipt: receipt, authenticatorData: authenticatorData.encoded)
    alterations.statement(&statement)
    return statement.encoded
  }

  /// A receipt of type `RECEIPT` for `key`, as Apple's servers would exchange it for the first one.
  public func riskReceipt(
    of key: P256PrivateKey, metric: UInt32, at instant: Timestamp
  ) throws(CryptographyError) -> [UInt8] {
    let template = AttestationLeaf.template(publicKey: key.publicKey, app: app, nonce: [], at: instant)
    let issuer = authority.attestationIntermediate
    let leaf = try template.signed(by: issuer.certificate, key: issuer.key, digest: .sha256)
    return try sign(ReceiptContent.risk(app: app, leaf: leaf, metric: metric, at: instant))
  }

  /// Signs a receipt with this content.
  func receipt(_ content: ReceiptContent) throws(CryptographyError) -> [UInt8] { try sign(content) }

  private func receipt(
    leaf: Certificate, clientDataHash: [UInt8], at instant: Timestamp
  ) throws(CryptographyError) -> [UInt8] {
    let created = instant.advanced(by: .milliseconds(200))
    return try sign(.attest(app: app, leaf: leaf, clientDataHash: clientDataHash, device: device, at: created))
  }

  private func sign(_ content: ReceiptContent) throws(CryptographyError) -> [UInt8] {
    var content = content
    alterations.receipt(&content)
    let signer = alterations.receiptSigner ?? authority.receiptSigner
    let chain = [signer, authority.receiptIntermediate, authority.receiptRoot].map(\.certificate)
    var message = SignedDataTemplate(content: content.encoded, certificates: chain)
    alterations.receiptMessage(&message)
    return try message.signed(by: signer.certificate, key: signer.key)
  }
}

/// The differences between an attestation and that of a genuine device.
///
/// Each step gets the valid value and may change it before anything that depends on it is made, so that exactly one
/// rule is broken.
public struct AttestationAlterations: Sendable {
  /// Changes the authenticator data before the leaf is issued for it.
  public var authenticatorData: @Sendable (inout SimulatedAuthenticatorData) -> Void = { _ in }

  /// The leaf before it is signed.
  public var leaf: @Sendable (inout CertificateTemplate) -> Void = { _ in }

  /// The signer of the leaf instead of the authority's intermediate.
  public var leafIssuer: SigningIdentity?
  /// The receipt before it is signed.
  public var receipt: @Sendable (inout ReceiptContent) -> Void = { _ in }

  /// Encoding and certificates of the receipt.
  public var receiptMessage: @Sendable (inout SignedDataTemplate) -> Void = { _ in }

  /// The signer of the receipt instead of the authority's signer.
  public var receiptSigner: SigningIdentity?
  /// The finished parts, before they are put together.
  public var statement: @Sendable (inout AttestationStatement) -> Void = { _ in }

  /// Creates alterations that change nothing.
  public init() {}
}

/// The parts of an attestation object (WebAuthn section 6.5).
public struct AttestationStatement: Sendable {
  /// The member `fmt`.
  public var format = "apple-appattest"
  /// `x5c`: leaf and intermediate, DER.
  public var chain: [[UInt8]]
  /// `nil` leaves the key out.
  public var receipt: [UInt8]?
  /// The encoded authenticator data.
  public var authenticatorData: [UInt8]
  /// Additional members. One with an existing key makes a duplicate.
  public var additions: [(key: String, value: [UInt8])] = []
  /// Bytes after the object.
  public var trailer: [UInt8] = []

  /// The CBOR of the attestation.
  public var encoded: [UInt8] {
    var statement = [CBORMap.Pair("x5c", .array(chain.map { .bytes($0) }))]
    if let receipt { statement.append(.init("receipt", .bytes(receipt))) }
    let object: [CBORMap.Pair] = [
      .init("fmt", .text(format)), .init("attStmt", .map(CBORMap(statement))),
      .init("authData", .bytes(authenticatorData)),
    ]
    let additions = additions.map { CBORMap.Pair(.text($0.key), .bytes($0.value)) }
    return CBORValue.map(CBORMap(object + additions)).encoded + trailer
  }
}
