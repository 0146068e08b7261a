public import ByteCoding
internal import CBOR
internal import Cryptography
public import Explanations

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
