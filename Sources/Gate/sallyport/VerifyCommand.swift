internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import GateRuntime

/// Runs the gate's verification and explains the result of each rule.
struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Verifies what a device sent: an attestation, an assertion, a receipt, a chain; explains each step.",
    discussion: """
      Exits 0 if every rule passes, 1 if any rule fails, also for malformed content. The key's environment, validation \
      categories and the freshness of receipts are reported, but not verified. A rule that lacks a value to compare \
      with is marked "-" (not_checked) and does not fail: a receipt alone has no client data hash and no environment. \
      attestation, assertion and receipt are of App Attest, android is for the chains of Android devices.

      Example:

        sallyport verify attestation object.bin --json \\
          --app-id AAABBBCCC1.com.example.app \\
          --key-id "$KEY_ID" --client-data-hash "$HASH"
      """,
    subcommands: [
      VerifyAttestationCommand.self, VerifyAssertionCommand.self, VerifyReceiptCommand.self, VerifyAndroidCommand.self,
    ])
}

struct VerifyAttestationCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attestation",
    abstract: "Explains an attestation object.",
    discussion: """
      Example: an attestation of a simulated device, under simulated roots

        sallyport verify attestation object.b64 \\
          --app-id SALLYPORT1.com.example.app \\
          --key-id "$KEY_ID" --client-data-hash "$HASH" \\
          --root attestation-root.pem --root receipt-root.pem
      """)

  @OptionGroup var input: VerifyInput
  @OptionGroup var trust: VerifyTrust
  @OptionGroup var hash: VerifyHash

  @Option(
    help: ArgumentHelp(
      "What the device calls the key: base64 of 32 bytes. By default that of the registration.", valueName: "base64"),
    transform: VerifyArgument.keyID)
  var keyID: KeyID?

  func run() throws {
    let instant = trust.at ?? .now().wholeSecond
    try input.report(on: .attestation, at: instant) { content, app throws(Failure) in
      guard let keyID = keyID ?? content.keyID else {
        throw Failure(
          .usage, "the key identifier is not known", hint: "add --key-id, as the device calls the key")
      }
      let clientDataHash = try hash.clientDataHash(in: content)
      let verifier = AttestationVerifier(
        apps: [app: Set(AttestEnvironment.allCases)],
        attestationRoots: try trust.roots(insteadOf: AppleRoots.appAttestation),
        receiptRoots: try trust.roots(insteadOf: AppleRoots.appleRootG3))
      func explanation(_ hash: ClientDataHash) -> Explanation {
        verifier.explain(content.object, keyID: keyID, clientDataHash: hash, at: instant)
      }
      let result = explanation(clientDataHash)
      guard result.isBroken("nonce") else {
        let created = (try? AttestationObject(content.object))?.receipt.creationTime
        return (
          result,
          result.hintOfTime(created) { other in
            verifier.explain(content.object, keyID: keyID, clientDataHash: clientDataHash, at: other)
          }
        )
      }
      return (result, NonceMistake.hint(for: hash.nonce(in: content)) { !explanation($0).isBroken("nonce") })
    }
  }
}

struct VerifyAssertionCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "assertion",
    abstract: "Explains an assertion.",
    discussion: """
      Example: an assertion from standard input, by a key that has no earlier assertion

        sallyport verify assertion - \\
          --app-id AAABBBCCC1.com.example.app --public-key "$KEY" \\
          --nonce "$NONCE" --counter 0

      The headers of a request, which have the nonce:

        attest headers wss://localhost:6200/ > headers
        sallyport verify assertion headers --counter 0 \\
          --app-id SALLYPORT1.com.example.app --public-key "$KEY"
      """)

  @OptionGroup var input: VerifyInput
  @OptionGroup var hash: VerifyHash
  @OptionGroup var key: VerifyKey

  @Option(help: ArgumentHelp("The last accepted counter of the key.", valueName: "number"))
  var counter: UInt32

  func run() throws {
    try input.report(on: .assertion, at: nil) { content, app throws(Failure) in
      let clientDataHash = try hash.clientDataHash(in: content)
      func explanation(_ hash: ClientDataHash) -> Explanation {
        AssertionVerifier().explain(
          content.object, by: key.value, of: app, clientDataHash: hash, after: SignCount(counter))
      }
      var result = explanation(clientDataHash)
      if let keyID = content.keyID {
        let own = KeyID(ofPublicKey: key.value.x963)
        result.record(
          "key_id", rule: "the key identifier of the headers is the SHA-256 of the public key",
          rejection: keyID == own ? nil : "the headers are of the key \(keyID.base64), --public-key is \(own.base64)")
      }
      guard result.isBroken("signature") else { return (result, nil) }
      return (result, NonceMistake.hint(for: hash.nonce(in: content)) { !explanation($0).isBroken("signature") })
    }
  }
}

struct VerifyReceiptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receipt",
    abstract: "Explains a receipt.",
    discussion: """
      A receipt of the type ATTEST comes with an attestation and has no risk metric: risk_metric_state is not_asked. \
      One of the type RECEIPT is Apple's answer to an exchange and must have one. not_before is the time from which \
      Apple exchanges a receipt, expiration_time that until which.

      Example:

        sallyport verify receipt receipt.bin --at 2026-04-21T18:13:12.153Z \\
          --app-id AAABBBCCC1.com.example.app --public-key "$KEY"
      """)

  @OptionGroup var input: VerifyInput
  @OptionGroup var trust: VerifyTrust
  @OptionGroup var key: VerifyKey

  func run() throws {
    let instant = trust.at ?? .now().wholeSecond
    try input.report(on: .receipt, at: instant) { content, app throws(Failure) in
      let verifier = ReceiptVerifier(roots: try trust.roots(insteadOf: AppleRoots.appleRootG3))
      let expectation = ReceiptExpectation(appID: app, publicKey: key.value.x963)
      let receipt = try? Receipt(content.object)
      func explanation(at instant: Timestamp) -> Explanation {
        var explanation = verifier.explain(content.object, for: expectation, at: instant)
        explanation.explainMetric(of: receipt)
        return explanation
      }
      let result = explanation(at: instant)
      return (result, result.hintOfTime(receipt?.creationTime) { explanation(at: $0) })
    }
  }
}

extension Explanation {
  /// Adds the rule of the risk metric, and its state: `not_asked`, `reported`, `missing` or `malformed`.
  fileprivate mutating func explainMetric(of receipt: Receipt?) {
    let rule = "the risk metric of a receipt of the type RECEIPT is a decimal number"
    guard let receipt, receipt.kind == .receipt else {
      skip("risk_metric", rule: rule)
      if let receipt, receipt.riskMetric == nil { fields.append(.init("risk_metric_state", .text("not_asked"))) }
      return
    }
    let state: String
    do throws(ExchangeFault) {
      guard let text = receipt.riskMetric else { throw .metricMissing }
      _ = try RiskMetric.value(of: text)
      record("risk_metric", rule: rule, rejection: Optional<ExchangeFault>.none)
      state = "reported"
    } catch {
      record("risk_metric", rule: rule, rejection: error)
      state = error == .metricMissing ? "missing" : "malformed"
    }
    fields.append(.init("risk_metric_state", .text(state)))
  }

  /// Whether the rule `name` was checked and is broken.
  fileprivate func isBroken(_ name: String) -> Bool { steps.contains { $0.name == name && $0.outcome == .broken } }

  /// The hint for an object of which only the time does not hold: at `created`, the instant at which Apple made its
  /// receipt, every rule passes. `nil` for any other fault.
  fileprivate func hintOfTime(
    _ created: Timestamp?, _ explanation: (Timestamp) -> Explanation
  ) -> String? {
    guard !holds, let created, explanation(created).holds else { return nil }
    return """
      only the time does not hold: every rule passes at \(created), when Apple made the receipt. Verify it with --at \
      \(created). If a gate refused it then, compare the gate's clock with that time (timedatectl)
      """
  }
}
