import AppAttest
import AttestGate
import ByteCoding
import Testing

@testable import GateRuntime

@Suite("When a receipt is due again")
struct ScheduleTests {
  private let end = Scene.now.advanced(by: Scene.day * 90)

  private func settlement(
    _ judgement: Judgement, failures: Int = 0, notBefore: Timestamp? = nil, expiration: Timestamp? = nil,
    random: Double = 0
  ) throws -> ReceiptSettlement? {
    ExchangeSchedule.settlement(
      after: judgement, of: try Scene().due(failures: failures), receipt: (notBefore, expiration ?? end),
      at: Scene.now, random: random)
  }

  private func wait(
    _ judgement: Judgement, failures: Int = 0, notBefore: Timestamp? = nil, random: Double = 0
  ) throws -> Duration? {
    try settlement(judgement, failures: failures, notBefore: notBefore, random: random)?.next?.since(Scene.now)
  }

  private func renewed(notBefore: Duration) -> Judgement {
    .renewed(
      RenewedReceipt(
        receipt: [1], risk: KeyRisk(metric: 2, at: Scene.now), notBefore: Scene.now.advanced(by: notBefore),
        expiration: end))
  }

  @Test("200: the new receipt replaces the stored one and is exchanged after its own not-before")
  func success() throws {
    let settlement = try #require(try settlement(renewed(notBefore: Scene.day), failures: 5))
    #expect(settlement.receipt == [1] && settlement.risk?.metric == 2 && settlement.failures == 0)
    #expect(settlement.next == Scene.now.advanced(by: Scene.day))
    #expect(try wait(renewed(notBefore: Scene.day), random: 1) == Scene.day + Scene.hour)
  }

  @Test("200: a not-before in ten years is bounded to a month, and one in the past to an hour")
  func boundedNotBefore() throws {
    #expect(try wait(renewed(notBefore: Scene.day * 3650)) == Scene.day * 30)
    #expect(try wait(renewed(notBefore: Scene.day * -10)) == Scene.hour)
  }

  @Test("304: the old receipt stays and waits for its not-before, at least an hour and at most a month")
  func notYet() throws {
    let settlement = try #require(try settlement(.notYet, notBefore: Scene.now.advanced(by: Scene.day * 3)))
    #expect(settlement.receipt == nil && settlement.risk == nil && settlement.failures == 0)
    #expect(settlement.next == Scene.now.advanced(by: Scene.day * 3))
    #expect(try wait(.notYet) == Scene.day)
    #expect(try wait(.notYet, notBefore: Scene.now) == Scene.hour)
    #expect(try wait(.notYet, notBefore: Scene.now.advanced(by: Scene.day * 3650)) == Scene.day * 30)
  }

  @Test("400: the receipt is not sent again for a month, and damaged bytes are not looked at for as long")
  func refused() throws {
    #expect(try wait(.refused) == Scene.day * 30 && wait(.damaged(.invalidSignature)) == Scene.day * 30)
    #expect(try settlement(.refused)?.receipt == nil)
  }

  @Test("401: nothing is stored, so that the receipt stays due")
  func unauthorized() throws { #expect(try settlement(.unauthorized(clockAhead: nil)) == nil) }

  @Test("404: the receipt and the metric stay; it is asked again after a week, then after a month")
  func noData() throws {
    let first = try #require(try settlement(.noData))
    #expect(first.receipt == nil && first.risk == nil && first.failures == 1)
    #expect(first.next == Scene.now.advanced(by: Scene.day * 7))
    #expect(try wait(.noData, failures: first.failures) == Scene.day * 30)
  }

  @Test("429, 5xx, no answer: full jitter up to a bound that doubles to six hours; everything stays")
  func backoff() throws {
    for judgement in [Judgement.busy(status: 503, retryAfter: nil), .unusable(.noAnswer(reason: "timed out"))] {
      #expect(try wait(judgement) == .zero && wait(judgement, random: 1) == .seconds(60))
      #expect(try wait(judgement, failures: 3, random: 1) == .seconds(480))
      #expect(try wait(judgement, failures: 3, random: 0.5) == .seconds(240))
      #expect(try wait(judgement, failures: .max, random: 1) == Scene.hour * 6)
      let settlement = try #require(try settlement(judgement, failures: 3))
      #expect(settlement.receipt == nil && settlement.risk == nil && settlement.failures == 4)
    }
  }

  @Test("Retry-After is honoured up to a day")
  func retryAfter() throws {
    #expect(try wait(.busy(status: 429, retryAfter: .seconds(900)), random: 1) == .seconds(900))
    #expect(try wait(.busy(status: 429, retryAfter: Scene.day * 365)) == Scene.day)
    #expect(try wait(.busy(status: 429, retryAfter: .seconds(-5))) == .zero)
  }

  @Test("An answer that breaks a rule changes nothing and is asked for again within a day")
  func unusable() throws {
    let settlement = try #require(try settlement(.unusable(.metricMissing), failures: 9, random: 1))
    #expect(settlement.receipt == nil && settlement.risk == nil)
    #expect(settlement.next == Scene.now.advanced(by: Scene.day))
  }

  @Test("Expired: never due again; a receipt that waits is due once right after its expiration, and is then not sent")
  func expired() throws {
    #expect(try settlement(.expired)?.next == nil)
    let soon = Scene.now.advanced(by: Scene.day)
    for judgement in [Judgement.noData, .refused, .notYet] {
      let settlement = try #require(
        try settlement(judgement, notBefore: Scene.now.advanced(by: Scene.day * 2), expiration: soon))
      #expect(settlement.next == soon.advanced(by: .seconds(1)))
    }
  }

  @Test("Extreme times in a receipt trap nowhere")
  func extremes() throws {
    for seconds in [Int64.min, .max] {
      let time = Timestamp(seconds: seconds)
      _ = try settlement(.notYet, notBefore: time, expiration: time, random: 1)
      let renewed = Judgement.renewed(
        RenewedReceipt(receipt: [], risk: KeyRisk(metric: 0, at: time), notBefore: time, expiration: time))
      _ = try settlement(renewed, random: 1)
    }
  }
}
