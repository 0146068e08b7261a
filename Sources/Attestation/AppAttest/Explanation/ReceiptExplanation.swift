public import ByteCoding
internal import Cryptography

extension ReceiptVerifier {
  /// Explains how `verify` would judge these bytes as a receipt.
  public func explain(_ bytes: [UInt8], for expectation: ReceiptExpectation, at instant: Timestamp) -> Explanation {
    var explanation = Explanation()
    do throws(ReceiptRejection) {
      let receipt = try Receipt(bytes)
      explain(receipt, for: expectation, at: instant, in: &explanation)
      explanation.fields = receipt.explainedFields
    } catch {
      for step in ReceiptStep.allCases {
        if step == error.brokenStep {
          explanation.record(step.rawValue, rule: step.rule, rejection: error)
        } else {
          explanation.skip(step.rawValue, rule: step.rule)
        }
      }
    }
    return explanation
  }

  /// Adds the steps for `receipt`. Steps whose expected value is unknown are not checked.
  func explain(
    _ receipt: Receipt, for expectation: ReceiptExpectation?, at instant: Timestamp, prefix: String = "",
    in explanation: inout Explanation
  ) {
    for step in ReceiptStep.allCases {
      let name = prefix + step.rawValue
      guard let expectation, compares(step, of: receipt, for: expectation) else {
        explanation.skip(name, rule: step.rule)
        continue
      }
      explanation.record(
        name, rule: step.rule,
        rejection: rejection { () throws(ReceiptRejection) in
          try check(step, of: receipt, for: expectation, at: instant)
        })
    }
  }
}

extension Receipt {
  var explainedFields: [Explanation.Field] {
    var fields: [Explanation.Field] = [
      .init("type", .text(kind.rawValue)),
      .init("app_id", .text(appID)),
      .base64("public_key", publicKey),
      .init("environment", .text(environment.rawValue)),
      .init("creation_time", .instant(creationTime)),
      .init("expiration_time", .instant(expirationTime)),
      .init("signer", .fields(signedData.signer.explainedFields)),
    ]
    if let clientDataHash { fields.append(.hex("client_data_hash", clientDataHash)) }
    if let riskMetric { fields.append(.init("risk_metric", .text(riskMetric))) }
    if let renewableFrom { fields.append(.init("not_before", .instant(renewableFrom))) }
    return fields
  }
}
