import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

@Suite("sallyport verify assertion")
struct VerifyAssertionTests {
  @Test("An assertion is valid after a smaller counter", arguments: [0, 6])
  func valid(_ counter: Int) throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let transcript = try shell.verify(
      ["assertion", "-", "--json"] + fixtures.assertionFlags(counter: counter), input: fixtures.assertion)
    #expect(transcript.status == 0)
    #expect(transcript.errors.isEmpty)
    let report = try transcript.report()
    #expect(report.holds && report.kind == "assertion")
    #expect(report.steps.map(\.name) == ["format", "extensions", "signature", "rp_id", "counter"])
    #expect(report.fields.counter == 7)
    #expect(report.at == nil)
  }

  @Test("An assertion is not valid after its own or a greater counter", arguments: [7, 8, 4_294_967_295])
  func refusesReplay(_ counter: Int) throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let transcript = try shell.verify(
      ["assertion", "-", "--json"] + fixtures.assertionFlags(counter: counter), input: fixtures.assertion)
    #expect(transcript.status == 1)
    #expect(try transcript.report().broken == ["counter"])
    #expect(
      transcript.errorLines.first
        == "error: the assertion is not valid: counter: the counter is 7, and the last one was \(counter)")
  }

  @Test("An assertion is not valid for another app, key or hash, or with a changed byte")
  func invalid() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let flags = fixtures.assertionFlags(counter: 0)
    let otherKey = Base64.encode(try P256PrivateKey().publicKey.x963)
    for (flag, value, broken) in [
      ("--app-id", "AAABBBCCC1.com.example.app", "rp_id"), ("--public-key", otherKey, "signature"),
      ("--client-data-hash", "", "signature"),
    ] {
      var changed = flags
      changed[try #require(flags.firstIndex(of: flag)) + 1] = value
      let transcript = try shell.verify(["assertion", "-", "--json"] + changed, input: fixtures.assertion)
      #expect(transcript.status == 1)
      #expect(try transcript.report().broken == [broken])
    }
    for content in [[], fixtures.assertion + [0], fixtures.assertion.dropLast(), fixtures.attestation] {
      let transcript = try shell.verify(["assertion", "-", "--json"] + flags, input: content)
      #expect(transcript.status == 1)
      #expect(try transcript.report().broken == ["format"])
    }
  }
}

@Suite("sallyport verify receipt")
struct VerifyReceiptTests {
  @Test("A receipt is valid, and its fields are shown")
  func valid() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let transcript = try shell.verify(
      ["receipt", "-", "--json"] + fixtures.receiptFlags(in: shell), input: fixtures.receipt)
    #expect(transcript.status == 0)
    #expect(transcript.errors.isEmpty)
    let report = try transcript.report()
    #expect(report.holds && report.kind == "receipt")
    #expect(report.fields.type == "RECEIPT" && report.fields.environment == "development")
    #expect(
      report.steps.map(\.name) == [
        "format", "certificate_chain", "signature", "app_id", "public_key", "client_data_hash", "environment", "expiry",
        "risk_metric",
      ])
    #expect(report.fields.risk_metric == "2" && report.fields.risk_metric_state == "reported")
    #expect(report.fields.not_before == "2027-01-16T08:00:00Z")
    #expect(report.fields.expiration_time == "2027-04-15T08:00:00Z")
  }

  @Test("The first receipt has no metric, which is not 0; the text shows metric, not-before and end of both types")
  func metricsOfBothTypes() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let first = try AttestationObject(fixtures.attestation).receipt.bytes
    let flags = try fixtures.receiptFlags(in: shell)
    let report = try shell.verify(["receipt", "-", "--json"] + flags, input: first).report()
    #expect(report.fields.risk_metric == nil && report.fields.risk_metric_state == "not_asked")
    #expect(report.fields.not_before == nil && report.fields.expiration_time == "2027-04-15T08:00:00.200Z")
    let texts = try [first, fixtures.receipt].map { try shell.verify(["receipt", "-"] + flags, input: $0) }
    #expect(texts.map(\.status) == [0, 0])
    for (name, isInFirst) in [("risk_metric_state", true), ("expiration_time", true), ("not_before", false)] {
      #expect(texts[0].output.contains("\n\(name) ") == isInFirst, "\(name)")
      #expect(texts[1].output.contains("\n\(name) "), "\(name)")
    }
  }

  @Test("A newer receipt without a decimal metric is not valid", arguments: [nil, "many", "-1", "99999999"])
  func malformedMetric(text: String?) throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    var mint = AttestationMint(authority: fixtures.authority, app: SimulatedApp(appID: Fixtures.appID))
    mint.alterations.receipt = { $0[text: 17] = text }
    let receipt = try mint.riskReceipt(of: fixtures.key, metric: 1, at: Fixtures.instant)
    let transcript = try shell.verify(
      ["receipt", "-", "--json"] + fixtures.receiptFlags(in: shell), input: receipt)
    #expect(transcript.status == 1)
    let report = try transcript.report()
    #expect(report.broken == ["risk_metric"])
    #expect(report.fields.risk_metric_state == (text == nil ? "missing" : "malformed"))
  }

  @Test("Values that were not given are not compared and not reported as valid, for any kind of receipt")
  func comparesNothing() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let first = try AttestationObject(fixtures.attestation).receipt.bytes
    for receipt in [fixtures.receipt, first] {
      let transcript = try shell.verify(
        ["receipt", "-", "--json"] + fixtures.receiptFlags(in: shell), input: receipt)
      #expect(transcript.status == 0)
      let report = try transcript.report()
      #expect(report.holds)
      // The first receipt has no metric.
      #expect(
        report.steps.filter { $0.result == "not_checked" }.map(\.name)
          == ["client_data_hash", "environment"] + (receipt == first ? ["risk_metric"] : []))
    }
  }

  @Test("A receipt is not valid for another app or key, after its expiry, or with Apple's root")
  func invalid() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let flags = try fixtures.receiptFlags(in: shell)
    let otherKey = Base64.encode(try P256PrivateKey().publicKey.x963)
    for (flag, value, broken) in [
      ("--app-id", "AAABBBCCC1.com.example.app", "app_id"), ("--public-key", otherKey, "public_key"),
      ("--at", "2027-04-15T08:00:00.001Z", "expiry"),
    ] {
      var changed = flags
      changed[try #require(flags.firstIndex(of: flag)) + 1] = value
      let transcript = try shell.verify(["receipt", "-", "--json"] + changed, input: fixtures.receipt)
      #expect(transcript.status == 1)
      #expect(try transcript.report().broken == [broken])
    }
    let untrusted = try shell.verify(["receipt", "-", "--json"] + flags.prefix(6), input: fixtures.receipt)
    #expect(untrusted.status == 1)
    #expect(try untrusted.report().broken == ["certificate_chain"])
    let malformed = try shell.verify(["receipt", "-", "--json"] + flags, input: fixtures.receipt.dropLast())
    #expect(malformed.status == 1)
    #expect(try malformed.report().broken == ["format"])
  }
}
