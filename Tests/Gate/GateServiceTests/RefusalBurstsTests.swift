import Testing

@testable import GateService

@Suite("Bursts of refusals")
struct RefusalBurstsTests {
  private func totals(_ count: UInt64, of code: String = "no_credentials") -> ActivityCounts {
    var counts = ActivityCounts()
    counts.refusals[.init(code: code, status: "401")] = count
    return counts
  }

  @Test("A burst begins with the threshold within a minute, and ends below half of it")
  func beginAndEnd() {
    var bursts = RefusalBursts(threshold: 10)
    #expect(bursts.note(totals(9)) == [])
    #expect(bursts.note(totals(12)) == [.refusalsBegan(code: "no_credentials", count: 12)])
    // As many more within the minute: the same burst.
    for total in stride(from: 14 as UInt64, through: 24, by: 2) { #expect(bursts.note(totals(total)) == []) }
    for _ in 0..<3 { #expect(bursts.note(totals(24)) == []) }
    #expect(bursts.note(totals(24)) == [.refusalsEnded(code: "no_credentials", count: 24)])
    #expect(bursts.note(totals(24)) == [])
    #expect(bursts.note(totals(34)) == [.refusalsBegan(code: "no_credentials", count: 10)])
  }

  @Test("As many refusals over a longer time are no burst, and codes are counted apart")
  func slowly() {
    var bursts = RefusalBursts(threshold: 10)
    for total in stride(from: 0 as UInt64, through: 60, by: 1) { #expect(bursts.note(totals(total)) == []) }
    var counts = totals(69)
    counts.refusals[.init(code: "rate_limited", status: "429")] = 9
    #expect(bursts.note(counts) == [.refusalsBegan(code: "no_credentials", count: 14)])
  }
}
