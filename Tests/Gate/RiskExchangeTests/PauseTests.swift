import AppAttest
import ByteCoding
import Testing

@testable import GateRuntime

@Suite("Pauses of the exchange")
struct PauseTests {
  private let team = DeveloperKey.Name(teamID: "AAABBBCCC1", keyID: "A")
  private let other = DeveloperKey.Name(teamID: "AAABBBCCC2", keyID: "B")
  private var production: ExchangePauses.Destination { .init(team, .production) }
  private var development: ExchangePauses.Destination { .init(team, .development) }

  @Test("401 stops every exchange of its key, each time for longer up to a day, and reports it once")
  func unauthorized() {
    var pauses = ExchangePauses()
    var (uptime, waits) = (Duration.seconds(1000), [Duration]())
    for attempt in 0..<12 {
      let changes = pauses.note(.unauthorized(clockAhead: nil), of: production, at: uptime, random: 1)
      #expect(changes == (attempt == 0 ? [.stopped(team, for: .seconds(600), clockAhead: nil)] : []))
      #expect(pauses.end(of: development, at: uptime) == pauses.end(of: production, at: uptime))
      #expect(pauses.end(of: .init(other, .production), at: uptime) == nil)
      guard let end = pauses.end(of: production, at: uptime) else { break }
      waits.append(end - uptime)
      uptime = end
      #expect(pauses.end(of: production, at: uptime) == nil)
    }
    #expect(waits.prefix(3) == [.seconds(600), .seconds(1200), .seconds(2400)])
    #expect(waits.last == .seconds(86400) && waits.count == 12)
    #expect(pauses.stopped == [team])
    #expect(pauses.note(.notYet, of: production, at: uptime, random: 1) == [.resumed(team)])
    #expect(pauses.stopped.isEmpty)
  }

  private let absence = Judgement.unusable(.noAnswer(reason: "timed out"))

  @Test("No answer pauses its host alone from the third in a row on, with full jitter, and any answer ends that")
  func absences() {
    var pauses = ExchangePauses()
    var changes: [ExchangePauses.Change] = []
    for _ in 0..<2 { changes += pauses.note(absence, of: production, at: .zero, random: 1) }
    #expect(changes == [] && pauses.end(of: production, at: .zero) == nil)
    changes += pauses.note(absence, of: production, at: .zero, random: 1)
    #expect(pauses.end(of: production, at: .zero) == .seconds(2))
    for _ in 0..<40 { changes += pauses.note(absence, of: production, at: .zero, random: 1) }
    #expect(changes == [.failing(production, reason: "timed out")])
    #expect(pauses.end(of: production, at: .zero) == .seconds(60) && pauses.end(of: development, at: .zero) == nil)
    _ = pauses.note(absence, of: production, at: .zero, random: 0)
    #expect(pauses.end(of: production, at: .zero) == nil)
    #expect(pauses.note(.noData, of: production, at: .zero, random: 1) == [.recovered(production)])
    #expect(pauses.end(of: production, at: .zero) == nil)
  }

  @Test("Receipts that always fail pause nothing; twenty failures in a row are reported once")
  func failures() {
    var pauses = ExchangePauses()
    var changes: [ExchangePauses.Change] = []
    for number in 0..<40 {
      let judgement: Judgement = number % 2 == 0 ? .busy(status: 500, retryAfter: nil) : .unusable(.notBase64)
      changes += pauses.note(judgement, of: production, at: .zero, random: 1)
      #expect(pauses.end(of: production, at: .zero) == nil)
      #expect(changes.count == (number < 19 ? 0 : 1))
    }
    #expect(pauses.note(.notYet, of: production, at: .zero, random: 1) == [.recovered(production)])
  }

  @Test("Retry-After pauses the host, for an hour at most")
  func retryAfter() {
    var pauses = ExchangePauses()
    _ = pauses.note(.busy(status: 429, retryAfter: .seconds(120)), of: production, at: .zero, random: 0)
    #expect(pauses.end(of: production, at: .zero) == .seconds(120))
    _ = pauses.note(.busy(status: 429, retryAfter: .seconds(1 << 40)), of: production, at: .zero, random: 0)
    #expect(pauses.end(of: production, at: .zero) == .seconds(3600))
  }

  @Test("A reload keeps what Retry-After asked for, and tries refused keys and hosts without an answer at once")
  func reload() {
    var pauses = ExchangePauses()
    _ = pauses.note(.busy(status: 429, retryAfter: .seconds(120)), of: production, at: .zero, random: 0)
    for _ in 0..<5 { _ = pauses.note(absence, of: development, at: .zero, random: 1) }
    _ = pauses.note(.unauthorized(clockAhead: nil), of: .init(other, .production), at: .zero, random: 1)
    var kept = pauses.requested(at: .seconds(100))
    #expect(kept.end(of: production, at: .seconds(100)) == .seconds(120))
    #expect(kept.end(of: development, at: .zero) == nil && kept.end(of: .init(other, .production), at: .zero) == nil)
    #expect(kept.stopped.isEmpty)
    #expect(kept.requested(at: .seconds(100)).end(of: production, at: .seconds(100)) == .seconds(120))
    // The next worker counts failures from the start.
    var changes: [ExchangePauses.Change] = []
    for _ in 0..<2 { changes += kept.note(absence, of: production, at: .seconds(120), random: 1) }
    #expect(changes == [] && kept.end(of: production, at: .seconds(120)) == nil)
    #expect(pauses.requested(at: .seconds(120)).end(of: production, at: .zero) == nil)
  }
}
