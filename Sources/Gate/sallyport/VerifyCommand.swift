internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
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
    help: ArgumentHelp("What the device calls the key: base64 of 32 bytes.", valueName: "base64"),
    transform: VerifyArgument.keyID)
  var keyID: KeyID

  func run() throws {
    let instant = trust.at ?? .now()
    try input.report(on: "attestation", at: instant) { bytes, app throws(SallyportError) in
      let verifier = AttestationVerifier(
        apps: [app: Set(AttestEnvironment.allCases)],
        attestationRoots: try trust.roots(insteadOf: AppleRoots.appAttestation),
        receiptRoots: try trust.roots(insteadOf: AppleRoots.appleRootG3))
      return verifier.explain(bytes, keyID: keyID, clientDataHash: hash.value, at: instant)
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
          --client-data-hash "$HASH" --counter 0
      """)

  @OptionGroup var input: VerifyInput
  @OptionGroup var hash: VerifyHash
  @OptionGroup var key: VerifyKey

  @Option(help: ArgumentHelp("The last accepted counter of the key.", valueName: "number"))
  var counter: UInt32

  func run() throws {
    try input.report(on: "assertion", at: nil) { bytes, app in
      AssertionVerifier().explain(
        bytes, by: key.value, of: app, clientDataHash: hash.value, after: SignCount(counter))
    }
  }
}

struct VerifyReceiptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "receipt",
    abstract: "Explains a receipt.",
    discussion: """
      Example:

        sallyport verify receipt receipt.bin --at 2026-04-21T18:13:12.153Z \\
          --app-id AAABBBCCC1.com.example.app --public-key "$KEY"
      """)

  @OptionGroup var input: VerifyInput
  @OptionGroup var trust: VerifyTrust
  @OptionGroup var key: VerifyKey

  func run() throws {
    let instant = trust.at ?? .now()
    try input.report(on: "receipt", at: instant) { bytes, app throws(SallyportError) in
      let verifier = ReceiptVerifier(roots: try trust.roots(insteadOf: AppleRoots.appleRootG3))
      let expectation = ReceiptExpectation(appID: app, publicKey: key.value.x963)
      return verifier.explain(bytes, for: expectation, at: instant)
    }
  }
}
