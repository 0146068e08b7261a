public import ByteCoding
internal import CBOR
internal import Cryptography

extension AttestationVerifier {
  /// Explains how `verify` would judge these bytes as an attestation object.
  public func explain(
    _ bytes: [UInt8], keyID: KeyID, clientDataHash: ClientDataHash, at instant: Timestamp
  ) -> Explanation {
    do throws(AttestationRejection) {
      let attestation = try AttestationObject(bytes)
      return explain(
        AttestationClaim(attestation: attestation, keyID: keyID, clientDataHash: clientDataHash, instant: instant))
    } catch {
      return Self.explain(unreadable: error)
    }
  }

  private func explain(_ claim: AttestationClaim) -> Explanation {
    var explanation = Explanation()
    for step in AttestationStep.allCases where step != .receipt {
      let rejection = rejection { () throws(AttestationRejection) in
        try check(step, of: claim)
      }
      if step == .environment, case .rpIDMismatch = rejection {
        // Each app has its own allowed environments, and this command does not know the app.
        explanation.skip(step.rawValue, rule: step.rule)
      } else if case .nonceMismatch(let expected, let found) = rejection {
        explanation.record(
          step.rawValue, rule: step.rule,
          rejection: AttestationRejection.differentNonce(
            expected, found, because: differingPart(of: claim, found: found)))
      } else {
        explanation.record(step.rawValue, rule: step.rule, rejection: rejection)
      }
    }
    let expectation = probableExpectation(for: claim)
    receipts.explain(
      claim.attestation.receipt, for: expectation, at: claim.instant, prefix: Self.receiptPrefix, in: &explanation)
    explanation.fields = claim.attestation.explainedFields
    return explanation
  }

  /// Names the value under the leaf's nonce that is not what the device attested: client data hash, authenticator data
  /// or both.
  ///
  /// The nonce is one hash of both. The receipt decides: it names the client data hash that was attested.
  private func differingPart(of claim: AttestationClaim, found: [UInt8]) -> String {
    let (attestation, receipt) = (claim.attestation, claim.attestation.receipt)
    let either = "another client data hash was attested, or the authenticator data was changed"
    guard receipt.kind == .attest, let attested = receipt.clientDataHash, let app = appIDs.first,
      let key = attestation.leaf.p256PublicKey
    else { return either }
    // Not a matter of trust: no other value has this hash.
    if SHA256.hash(attestation.authenticatorData, attested) == found {
      return "the client data hash \(Hex.encode(attested)) was attested; the authenticator data is unchanged"
    }
    // The receipt of another key says nothing about this leaf. No other value of the expectation is compared.
    let expectation = ReceiptExpectation(appID: app, publicKey: key)
    let isGenuine = [ReceiptStep.certificateChain, .signature, .publicKey].allSatisfy { step in
      rejection { () throws(ReceiptRejection) in
        try receipts.check(step, of: receipt, for: expectation, at: claim.instant)
      } == nil
    }
    guard isGenuine else { return either }
    return attested == claim.clientDataHash.bytes
      ? "the authenticator data was changed; the receipt names this client data hash"
      : "the authenticator data was changed, and the receipt names the client data hash \(Hex.encode(attested))"
  }

  /// Returns the expected values for the receipt. If the attestation is for an unknown app and only one app is
  /// expected, that app is used. If the environment is unknown, the other values are still compared.
  private func probableExpectation(for claim: AttestationClaim) -> ReceiptExpectation? {
    if let expectation = try? receiptExpectation(for: claim) { return expectation }
    guard appIDs.count == 1, let app = appIDs.first, let key = claim.attestation.leaf.p256PublicKey else { return nil }
    return ReceiptExpectation(
      kind: .attest, appID: app, publicKey: key, clientDataHash: claim.clientDataHash,
      environment: AttestEnvironment(aaguid: claim.attestation.credential.aaguid))
  }

  static let receiptPrefix = "receipt_"

  private static func explain(unreadable rejection: AttestationRejection) -> Explanation {
    var explanation = Explanation()
    let rules =
      AttestationStep.allCases.filter { $0 != .receipt }.map { ($0.rawValue, $0.rule) }
      + ReceiptStep.allCases.map { (receiptPrefix + $0.rawValue, $0.rule) }
    for (name, rule) in rules {
      switch name {
      case rejection.step: explanation.record(name, rule: rule, rejection: rejection)
      // Errors of a part are found only in an object with the right members.
      case AttestationStep.format.rawValue: explanation.record(name, rule: rule, rejection: String?.none)
      default: explanation.skip(name, rule: rule)
      }
    }
    return explanation
  }
}

/// Returns the error that `body` throws, or `nil`.
func rejection<Rejection: Error>(_ body: () throws(Rejection) -> Void) -> Rejection? {
  do throws(Rejection) {
    try body()
    return nil
  } catch {
    return error
  }
}

extension AttestationObject {
  fileprivate var explainedFields: [Explanation.Field] {
    let environment = AttestEnvironment(aaguid: credential.aaguid)
    return [
      .base64("key_id", SHA256.hash(credential.publicKey)),
      .base64("public_key", credential.publicKey),
      .init("environment", .text(environment?.rawValue ?? "unknown")),
      .init("counter", .number(Int(head.counter.value))),
      .hex("rp_id_hash", head.rpIDHash),
      .hex("flags", [head.flags]),
      .hex("aaguid", credential.aaguid),
      .base64("credential_id", credential.credentialID),
      .init("extensions", .fields(extensions?.explainedFields ?? [])),
      .init("leaf", .fields(leaf.explainedFields)),
      .init("intermediate", .fields(intermediate.explainedFields)),
      .init("receipt", .fields(receipt.explainedFields)),
    ]
  }
}

extension AuthenticatorExtensions {
  var explainedFields: [Explanation.Field] {
    var fields: [Explanation.Field] = []
    if let validationCategory { fields.append(.init("validation_category", .text(validationCategory.name))) }
    if let bundleVersion { fields.append(.init("bundle_version", .text(bundleVersion))) }
    return fields + [.init("count", .number(all.count))]
  }
}

extension Certificate {
  var explainedFields: [Explanation.Field] {
    [
      .init("subject", .text(subject)), .hex("serial_number", serialNumber), .init("not_before", .instant(notBefore)),
      .init("not_after", .instant(notAfter)), .hex("sha256", fingerprint),
    ]
  }
}
