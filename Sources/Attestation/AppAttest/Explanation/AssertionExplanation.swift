public import Cryptography
public import ByteCoding

extension AssertionVerifier {
  /// Explains how `verify` would judge these bytes as an assertion.
  public func explain(
    _ bytes: [UInt8], by publicKey: P256PublicKey, of appID: AppID, clientDataHash: ClientDataHash,
    after last: SignCount
  ) -> Explanation {
    do throws(AssertionRejection) {
      let assertion = try Assertion(bytes)
      return explain(
        AssertionClaim(
          assertion: assertion, appID: appID, publicKey: publicKey, clientDataHash: clientDataHash, last: last))
    } catch {
      return Self.explain(unreadable: error)
    }
  }

  private func explain(_ claim: AssertionClaim) -> Explanation {
    var explanation = Explanation()
    for step in AssertionStep.allCases {
      explanation.record(
        step.rawValue, rule: step.rule,
        rejection: rejection { () throws(AssertionRejection) in
          try check(step, of: claim)
        })
    }
    explanation.fields = claim.assertion.explainedFields
    return explanation
  }

  private static func explain(unreadable rejection: AssertionRejection) -> Explanation {
    var explanation = Explanation()
    for step in AssertionStep.allCases {
      switch step {
      case rejection.brokenStep: explanation.record(step.rawValue, rule: step.rule, rejection: rejection)
      case .format: explanation.record(step.rawValue, rule: step.rule, rejection: String?.none)
      default: explanation.skip(step.rawValue, rule: step.rule)
      }
    }
    return explanation
  }
}

extension Assertion {
  fileprivate var explainedFields: [Explanation.Field] {
    [
      .init("counter", .number(Int(counter.value))),
      .hex("rp_id_hash", head.rpIDHash),
      .hex("flags", [head.flags]),
      .init("extensions", .fields(extensions?.explainedFields ?? [])),
      .base64("signature", signature),
    ]
  }
}
