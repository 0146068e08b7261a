import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import SimulatedDevice
import Testing

@testable import GateRuntime

@Suite("Answers of Apple's data service")
struct AnswerTests {
  @Test("200: a receipt that passes every rule replaces the stored one, with its metric and times")
  func renewed() throws {
    let scene = try Scene()
    let receipt = try scene.risk(7)
    guard case .renewed(let renewed) = try scene.judgement(on: receipt) else {
      Issue.record("\(try scene.judgement(on: receipt))")
      return
    }
    #expect(renewed.receipt == receipt && renewed.risk == KeyRisk(metric: 7, at: Scene.now))
    #expect(renewed.notBefore == Scene.now.advanced(by: Scene.day))
    #expect(renewed.expiration == Scene.now.advanced(by: Scene.day * 90))
  }

  @Test(
    "Each status has its meaning",
    arguments: [
      (304, "not_yet"), (400, "refused"), (401, "unauthorized"), (404, "no_data"), (429, "busy"), (500, "busy"),
      (503, "busy"), (599, "busy"), (200, "unusable"), (206, "unusable"), (301, "unusable"), (403, "unusable"),
    ])
  func statuses(status: Int, code: String) throws {
    let scene = try Scene()
    let answer = ExchangeAnswer(status: status, body: Array("<html>".utf8))
    #expect(scene.judge.judge(answer, to: try Receipt(scene.first), of: scene.key, at: Scene.now).code == code)
  }

  @Test("An answer that no rule provides for has a code: redirect, other status, no base64, too long")
  func strangeAnswers() throws {
    let scene = try Scene()
    func fault(_ status: Int, _ body: [UInt8] = []) throws -> String? {
      scene.judge.judge(
        ExchangeAnswer(status: status, body: body), to: try Receipt(scene.first), of: scene.key, at: Scene.now
      ).fault
    }
    #expect(try fault(302) == "redirect" && fault(206) == "unexpected_status" && fault(204) == "unexpected_status")
    #expect(try fault(200) == "not_base64" && fault(200, Array("{}".utf8)) == "not_base64")
    #expect(try fault(200, [UInt8](repeating: 65, count: DataService.longestAnswer + 4)) == "answer_too_long")
    #expect(try fault(200, Array("QUJD".utf8)) == "receipt_format")
  }

  /// A change of a genuine answer that breaks one rule.
  struct BrokenRule: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: String
    let alter: @Sendable (inout ReceiptContent) -> Void
  }

  static let rules: [BrokenRule] = [
    .init(testDescription: "another app", code: "receipt_app_id") { $0[text: 2] = "AAABBBCCC1.com.example.other" },
    .init(testDescription: "the other environment", code: "receipt_environment") { $0[text: 7] = "production" },
    .init(testDescription: "the type ATTEST", code: "receipt_type") { $0[text: 6] = "ATTEST" },
    .init(testDescription: "an unknown type", code: "receipt_format") { $0[text: 6] = "REFUND" },
    .init(testDescription: "no metric", code: "metric_missing") { $0[17] = nil },
    .init(testDescription: "an empty metric", code: "metric_malformed") { $0[text: 17] = "" },
    .init(testDescription: "a metric in words", code: "metric_malformed") { $0[text: 17] = "many" },
    .init(testDescription: "a metric with a fraction", code: "metric_malformed") { $0[text: 17] = "1.5" },
    .init(testDescription: "a metric in other digits", code: "metric_malformed") { $0[text: 17] = "\u{0663}" },
    .init(testDescription: "a negative metric", code: "metric_negative") { $0[text: 17] = "-1" },
    .init(testDescription: "a metric of 30 digits", code: "metric_too_large") {
      $0[text: 17] = String(repeating: "9", count: 30)
    },
    .init(testDescription: "a metric over the bound", code: "metric_too_large") { $0[text: 17] = "1000001" },
    .init(testDescription: "no not-before", code: "not_before_missing") { $0[19] = nil },
    .init(testDescription: "a not-before that is no time", code: "not_before_missing") { $0[text: 19] = "tomorrow" },
    .init(testDescription: "no expiration", code: "receipt_format") { $0[21] = nil },
    .init(testDescription: "an expiration in the past", code: "receipt_expiry") {
      $0[text: 21] = ReceiptContent.milliseconds(Scene.now.advanced(by: .seconds(-1)))
    },
    .init(testDescription: "a creation in two days", code: "created_in_future") {
      $0[text: 12] = ReceiptContent.milliseconds(Scene.now.advanced(by: Scene.day * 2))
    },
    .init(testDescription: "a creation before that of the receipt that was sent", code: "older_than_previous") {
      $0[text: 12] = ReceiptContent.milliseconds(Scene.now.advanced(by: Scene.day * -1))
    },
  ]

  @Test("200: each rule of the new receipt, broken alone, is refused with its own code", arguments: rules)
  func brokenRule(_ rule: BrokenRule) throws {
    let scene = try Scene()
    #expect(try scene.judgement(on: scene.risk { $0.receipt = rule.alter }).fault == rule.code)
  }

  @Test("200: a receipt that is a little older than the one that was sent, by another server's clock, is accepted")
  func slightlyOlder() throws {
    let scene = try Scene(registeredAt: Scene.now)
    let renewed = try scene.judgement(on: scene.risk(at: Scene.now.advanced(by: .seconds(-120))))
    #expect(renewed.fault == nil)
    let older = try scene.judgement(on: scene.risk(at: Scene.now.advanced(by: .seconds(-301))))
    #expect(older.fault == "older_than_previous")
  }

  @Test("200: a receipt of another key, one that another authority signed, and a changed one are refused")
  func forgedReceipts() throws {
    let (scene, other) = (try Scene(), try Scene())
    #expect(try scene.judgement(on: scene.risk(of: other.device)).fault == "receipt_public_key")
    let stranger = try TestAuthority(appID: Scene.app, at: Scene.now.advanced(by: Scene.day * -1))
    let forged = try scene.risk {
      $0.receiptSigner = stranger.receiptSigner
      $0.receiptMessage = {
        $0.certificates = [stranger.receiptSigner, stranger.receiptIntermediate, stranger.receiptRoot].map(
          \.certificate)
      }
    }
    #expect(try scene.judgement(on: forged).fault == "receipt_certificate_chain")
    // The metric itself, changed after the signature.
    var changed = try scene.risk(123_456)
    let place = try #require(changed.indices.first { changed[$0...].starts(with: Array("123456".utf8)) })
    changed[place] = UInt8(ascii: "0")
    #expect(try scene.judgement(on: changed).fault == "receipt_signature")
  }

  @Test("A clock that is an hour ahead or behind accepts genuine answers")
  func clocks() throws {
    let scene = try Scene()
    for offset in [Scene.hour * -1, Scene.hour] {
      #expect(try scene.judgement(on: scene.risk(), at: Scene.now.advanced(by: offset)).code == "renewed")
    }
  }

  @Test("401: the judgement has the difference of the clocks, which is the usual reason")
  func clockOf401() throws {
    let scene = try Scene()
    let answer = ExchangeAnswer(status: 401, date: Scene.now.advanced(by: Scene.hour * -1))
    #expect(
      scene.judge.judge(answer, to: try Receipt(scene.first), of: scene.key, at: Scene.now)
        == .unauthorized(clockAhead: Scene.hour))
  }

  @Test("A receipt that has expired is never sent, and neither are bytes that are no receipt of the key")
  func unsendable() async throws {
    let (scene, old, other) = (
      try Scene(), try Scene(registeredAt: Scene.now.advanced(by: Scene.day * -91)), try Scene()
    )
    let transport = ScriptedTransport([.init(status: 304)])
    let exchanger = ReceiptExchanger(transport: transport, judge: scene.judge)
    let key = try DeveloperKey.sample().key
    func code(_ due: DueReceipt) async -> String {
      await exchanger.exchange(due, with: key, at: Scene.now).judgement.code
    }
    #expect(await code(old.due()) == "expired")
    #expect(await code(DueReceipt(key: scene.key, receipt: [1, 2, 3], failures: 0)) == "damaged")
    #expect(await code(DueReceipt(key: scene.key, receipt: other.first, failures: 0)) == "damaged")
    #expect(transport.requests.isEmpty)
    #expect(await code(scene.due()) == "not_yet")
  }

  @Test("No answer, one of 1 GiB and one that is not HTTP have codes of their own")
  func transportFaults() async throws {
    let scene = try Scene()
    let transport = ScriptedTransport(results: [
      .failure(.noAnswer(reason: "timed out")), .failure(.answerTooLong), .failure(.malformedAnswer(reason: "x")),
    ])
    let exchanger = ReceiptExchanger(transport: transport, judge: scene.judge)
    var codes: [String?] = []
    for _ in 0..<3 {
      codes.append(
        await exchanger.exchange(scene.due(), with: try DeveloperKey.sample().key, at: Scene.now).judgement.fault)
    }
    #expect(codes == ["no_answer", "answer_too_long", "malformed_answer"])
  }
}
