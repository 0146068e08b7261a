public import ByteCoding
public import Cryptography

/// Decides whether an attestation proves that a key belongs to a genuine instance of a configured app.
///
/// Pure: time, roots and apps are arguments. It neither knows nonces nor stores anything.
public struct AttestationVerifier: Sendable {
  /// The leaf's extension with the nonce.
  static let nonceExtension = "1.2.840.113635.100.8.2"

  private let apps: [[UInt8]: AllowedApp]
  private let chains: ChainValidator
  let receipts: ReceiptVerifier

  private struct AllowedApp: Sendable {
    let appID: AppID
    let environments: Set<AttestEnvironment>
  }

  /// - Parameters:
  ///   - apps: the apps and, for each, in which environments its keys may have been made.
  ///   - attestationRoots: `AppleRoots.appAttestation` for real devices.
  ///   - receiptRoots: `AppleRoots.appleRootG3` for real devices.
  public init(
    apps: [AppID: Set<AttestEnvironment>], attestationRoots: [Certificate], receiptRoots: [Certificate]
  ) {
    self.apps = Dictionary(
      uniqueKeysWithValues: apps.map { ($0.hash, AllowedApp(appID: $0, environments: $1)) })
    chains = ChainValidator(roots: attestationRoots)
    receipts = ReceiptVerifier(roots: receiptRoots)
  }

  /// The apps whose keys it lets in.
  public var appIDs: [AppID] { apps.values.map(\.appID) }

  /// The key that `attestation` proves, at `instant`.
  ///
  /// - Parameters:
  ///   - keyID: what the client calls the key.
  ///   - clientDataHash: what the client was to have attested; on the gate's path SHA-256 of the nonce's 32 bytes.
  public func verify(
    _ attestation: AttestationObject, keyID: KeyID, clientDataHash: ClientDataHash, at instant: Timestamp
  ) throws(AttestationRejection) -> VerifiedAttestation {
    let claim = AttestationClaim(
      attestation: attestation, keyID: keyID, clientDataHash: clientDataHash, instant: instant)
    for step in AttestationStep.allCases { try check(step, of: claim) }
    return VerifiedAttestation(key: try attestedKey(of: claim), receipt: attestation.receipt)
  }

  /// Checks one rule, independently of the others.
  func check(_ step: AttestationStep, of claim: AttestationClaim) throws(AttestationRejection) {
    switch step {
    case .format: break  // there would be no attestation object otherwise
    case .certificateChain: try checkChain(of: claim)
    case .nonce: try checkNonce(of: claim)
    case .keyID: try checkKeyID(of: claim)
    case .rpID: _ = try app(of: claim)
    case .counter: try checkCounter(of: claim)
    case .environment: _ = try environment(of: claim)
    case .credentialID: try checkCredentialID(of: claim)
    case .credentialKey: try checkCredentialKey(of: claim)
    case .extensions: break  // as for the format
    case .receipt: try checkReceipt(of: claim)
    }
  }
}

/// A key that was proven, and the receipt that Apple issued for it. Only `AttestationVerifier` can make one.
public struct VerifiedAttestation: Sendable, Hashable {
  /// The attested key.
  public let key: AttestedKey
  /// The verified receipt.
  public let receipt: Receipt

  init(key: AttestedKey, receipt: Receipt) {
    self.key = key
    self.receipt = receipt
  }
}

/// An attestation and the expected values.
struct AttestationClaim {
  let attestation: AttestationObject
  let keyID: KeyID
  let clientDataHash: ClientDataHash
  let instant: Timestamp
}

extension AttestationVerifier {
  private func checkChain(of claim: AttestationClaim) throws(AttestationRejection) {
    let attestation = claim.attestation
    do throws(ChainRejection) {
      let chain = try chains.validate(
        leaf: attestation.leaf, intermediates: [attestation.intermediate], at: claim.instant)
      // Leaf, intermediate, root: a root in the place of the intermediate would make the chain shorter.
      guard chain.count == 3 else { throw ChainRejection.unexpectedLength(found: chain.count, expected: 3) }
    } catch {
      throw .untrustedChain(error)
    }
    _ = try leafKey(of: claim)
  }

  private func checkNonce(of claim: AttestationClaim) throws(AttestationRejection) {
    let expected = SHA256.hash(claim.attestation.authenticatorData, claim.clientDataHash.bytes)
    guard let value = claim.attestation.leaf.extensionValue(oid: Self.nonceExtension) else { throw .nonceMissing }
    // SEQUENCE { [1] EXPLICIT OCTET STRING of 32 bytes }, which DER writes in one way only.
    let frame: [UInt8] = [0x30, 0x24, 0xA1, 0x22, 0x04, 0x20]
    guard value.count == frame.count + SHA256.digestSize, value.starts(with: frame) else { throw .malformedNonce }
    let found = Array(value.dropFirst(frame.count))
    guard found == expected else { throw .nonceMismatch(expected: expected, found: found) }
  }

  private func checkKeyID(of claim: AttestationClaim) throws(AttestationRejection) {
    guard let found = KeyID(bytes: SHA256.hash(try leafKey(of: claim))), found == claim.keyID else {
      throw .keyIDMismatch(expected: claim.keyID)
    }
  }

  private func app(of claim: AttestationClaim) throws(AttestationRejection) -> AllowedApp {
    let hash = claim.attestation.head.rpIDHash
    guard let app = apps[hash] else { throw .rpIDMismatch(found: hash) }
    return app
  }

  private func checkCounter(of claim: AttestationClaim) throws(AttestationRejection) {
    let counter = claim.attestation.head.counter
    guard counter == .zero else { throw .counterNotZero(counter) }
  }

  private func environment(of claim: AttestationClaim) throws(AttestationRejection) -> AttestEnvironment {
    let aaguid = claim.attestation.credential.aaguid
    guard let environment = AttestEnvironment(aaguid: aaguid) else { throw .unknownEnvironment(aaguid: aaguid) }
    let app = try app(of: claim)
    guard app.environments.contains(environment) else { throw .environmentNotAllowed(environment, app: app.appID) }
    return environment
  }

  private func checkCredentialID(of claim: AttestationClaim) throws(AttestationRejection) {
    let found = claim.attestation.credential.credentialID
    guard found == claim.keyID.bytes else { throw .credentialIDMismatch(expected: claim.keyID, found: found) }
  }

  // Only this check ties the key that signs assertions to the key in the authenticator data.
  private func checkCredentialKey(of claim: AttestationClaim) throws(AttestationRejection) {
    let expected = try leafKey(of: claim)
    let found = claim.attestation.credential.publicKey
    guard found == expected else { throw .credentialKeyMismatch(expected: expected, found: found) }
  }

  private func checkReceipt(of claim: AttestationClaim) throws(AttestationRejection) {
    let expectation = try receiptExpectation(for: claim)
    do throws(ReceiptRejection) {
      try receipts.verify(claim.attestation.receipt, for: expectation, at: claim.instant)
    } catch {
      throw .receipt(error)
    }
  }

  func receiptExpectation(for claim: AttestationClaim) throws(AttestationRejection) -> ReceiptExpectation {
    ReceiptExpectation(
      kind: .attest, appID: try app(of: claim).appID, publicKey: try leafKey(of: claim),
      clientDataHash: claim.clientDataHash,
      environment: try environment(of: claim))
  }

  private func leafKey(of claim: AttestationClaim) throws(AttestationRejection) -> [UInt8] {
    guard let key = claim.attestation.leaf.p256PublicKey else { throw .unexpectedLeafKey }
    return key
  }

  private func attestedKey(of claim: AttestationClaim) throws(AttestationRejection) -> AttestedKey {
    AttestedKey(
      keyID: claim.keyID, publicKey: try leafKey(of: claim), appID: try app(of: claim).appID,
      environment: try environment(of: claim), validationCategory: claim.attestation.extensions?.validationCategory,
      bundleVersion: claim.attestation.extensions?.bundleVersion)
  }
}

extension AttestEnvironment {
  /// Parses the identifier of an environment, 16 bytes: `appattestdevelop`, or `appattest` and seven zero bytes.
  init?(aaguid: [UInt8]) {
    switch aaguid {
    case Array("appattestdevelop".utf8): self = .development
    case Array("appattest".utf8) + [0, 0, 0, 0, 0, 0, 0]: self = .production
    default: return nil
    }
  }
}
