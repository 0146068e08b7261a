public import Cryptography

/// Decides whether an attested key made an assertion. Pure: which counter was the last is an argument, and to advance
/// it is the caller's to do, in one step with the comparison (see `AttestGate`).
public struct AssertionVerifier: Sendable {
  /// Creates a verifier. It has no state.
  public init() {}

  /// Returns the counter of `assertion`, if `key` signed it over `clientDataHash` with a counter beyond `last`.
  ///
  /// - Parameter publicKey: the key, prepared once; `nil` prepares it in this call, which costs as much as the rest.
  public func verify(
    _ assertion: Assertion, by key: AttestedKey, publicKey: P256PublicKey? = nil, clientDataHash: ClientDataHash,
    after last: SignCount
  ) throws(AssertionRejection) -> SignCount {
    let claim = AssertionClaim(
      assertion: assertion, appID: key.appID, publicKey: try ready(publicKey, for: key), clientDataHash: clientDataHash,
      last: last)
    for step in AssertionStep.allCases { try check(step, of: claim) }
    return assertion.counter
  }

  /// Checks one rule, independently of the others.
  func check(_ step: AssertionStep, of claim: AssertionClaim) throws(AssertionRejection) {
    switch step {
    case .format, .extensions: break  // there would be no assertion otherwise
    case .signature: try checkSignature(of: claim)
    case .rpID: try checkRPID(of: claim)
    case .counter: try checkCounter(of: claim)
    }
  }

  // The message is itself a digest, and ECDSA hashes it again. Apple signs only in this way.
  private func checkSignature(of claim: AssertionClaim) throws(AssertionRejection) {
    let message = SHA256.hash(claim.assertion.authenticatorData, claim.clientDataHash.bytes)
    guard claim.publicKey.isValidSignature(claim.assertion.signature, for: message) else { throw .invalidSignature }
  }

  private func checkRPID(of claim: AssertionClaim) throws(AssertionRejection) {
    let found = claim.assertion.head.rpIDHash
    guard found == claim.appID.hash else { throw .rpIDMismatch(expected: claim.appID, found: found) }
  }

  private func checkCounter(of claim: AssertionClaim) throws(AssertionRejection) {
    let found = claim.assertion.counter
    guard found > claim.last else { throw .counterNotGreater(found: found, last: claim.last) }
  }

  /// Returns `publicKey`, or a key made from `key`.
  ///
  /// - Throws: `.invalidSignature` if `publicKey` belongs to another registration, or if `key` has no valid public key.
  private func ready(
    _ publicKey: P256PublicKey?, for key: AttestedKey
  ) throws(AssertionRejection) -> P256PublicKey {
    guard let ready = publicKey ?? (try? key.makePublicKey()), ready.x963 == key.publicKey else {
      throw .invalidSignature
    }
    return ready
  }
}

/// An assertion and the expected values.
struct AssertionClaim {
  let assertion: Assertion
  let appID: AppID
  let publicKey: P256PublicKey
  let clientDataHash: ClientDataHash
  let last: SignCount
}
