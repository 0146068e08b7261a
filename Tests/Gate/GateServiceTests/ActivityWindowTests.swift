import ByteCoding
import Testing

@testable import GateService

@Suite("Activity of the last hour")
struct ActivityWindowTests {
  private static func counts(admitted: UInt64, refused: UInt64 = 0) -> ActivityCounts {
    var counts = ActivityCounts()
    counts.admitted = admitted
    if refused > 0 { counts.refusals[.init(code: "no_credentials", status: "401")] = refused }
    return counts
  }

  @Test("In the first minute, the last minute and the last hour contain all counts")
  func young() {
    let activity = ActivityWindow().activity(Self.counts(admitted: 3), at: .seconds(5))
    #expect(activity.lastMinute.admitted == 3 && activity.lastHour.admitted == 3)
    #expect(activity.minutes.map(\.admitted) == [3])
  }

  @Test("One admission each second is 60 a minute and 3600 an hour, also after a day, with bounded memory")
  func steady() {
    var window = ActivityWindow()
    for time in stride(from: 10, through: 86_400, by: 10) {
      window.note(Self.counts(admitted: UInt64(time)), at: .seconds(time))
    }
    let activity = window.activity(Self.counts(admitted: 86_400), at: .seconds(86_400))
    #expect(activity.lastMinute.admitted == 60 && activity.lastHour.admitted == 3600)
    #expect(activity.minutes.map(\.admitted) == Array(repeating: 60, count: 60))
    #expect(window.countOfNotes <= 362)
  }

  @Test("Counts older than an hour leave the hour and stay in the total")
  func old() {
    var window = ActivityWindow()
    for time in stride(from: 10, through: 3700, by: 10) {
      window.note(Self.counts(admitted: 0, refused: 7), at: .seconds(time))
    }
    let counts = Self.counts(admitted: 0, refused: 9)
    let refusals = window.refusals(counts, at: .seconds(3700))
    #expect(refusals == [.init(code: "no_credentials", status: "401", lastHour: 2, total: 9)])
    #expect(window.activity(counts, at: .seconds(3700)).minutes.map(\.refused).reduce(0, +) == 2)
  }
}

@Suite("Text and figures on the status page")
struct PageTextTests {
  @Test("Text is escaped, in elements and in attributes")
  func escaping() {
    let text = #"<b a='1' c="2">&amp;"#
    let html: HTML = "<p title=\"\(text)\">\(text)</p>"
    let escaped = "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;"
    #expect(html.text == "<p title=\"\(escaped)\">\(escaped)</p>")
    let outer: HTML = "<div>\([html, html])\(7)</div>"
    #expect(outer.text == "<div>\(html.text)\(html.text)7</div>")
  }

  @Test(
    "A duration is shown in its two largest units",
    arguments: [
      (0, "0 s"), (-5, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min"),
      (86_399, "23 h 59 min"), (90_000, "1 d 1 h"),
    ] as [(Int64, String)])
  func spans(_ seconds: Int64, _ text: String) { #expect(Figures.span(seconds: seconds) == text) }

  @Test(
    "A size has at most three digits",
    arguments: [
      (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1550, "1.6 kB"), (20_000, "20 kB"), (999_999, "1.0 MB"),
      (.max, "18 EB"),
    ] as [(UInt64, String)])
  func sizes(_ count: UInt64, _ text: String) { #expect(Figures.bytes(count) == text) }

  @Test(
    "A narrow space separates thousands",
    arguments: [(7, "7"), (1234, "1\u{202F}234"), (1_234_567, "1\u{202F}234\u{202F}567")])
  func counts(_ count: Int, _ text: String) { #expect(Figures.count(count) == text) }
}
