import ByteCoding
import ConsoleFrame
import Markup
import Testing

@Suite("Values on the pages of a console")
struct ShownTests {
  private static let now = Timestamp(seconds: 1_800_000_000)

  @Test(
    "A time is relative, with the exact one in its title",
    arguments: [
      (0, "now"), (59, "59 s ago"), (61, "1 min ago"), (7200, "2 h ago"), (90_000, "1 d ago"), (-30, "in 30 s"),
      (-200_000, "in 2 d"),
    ] as [(Int64, String)])
  func times(_ age: Int64, _ text: String) {
    let instant = Self.now.advanced(by: .seconds(-age)).wholeSecond.description
    #expect(
      Shown.time(instant, at: Self.now).text
        == #"<time datetime="\#(instant)" title="\#(instant)">\#(text)</time>"#)
    #expect(Shown.distance(.min).hasPrefix("in "))
  }

  @Test("A text that is no time is escaped")
  func noTime() { #expect(Shown.time("<b>", at: Self.now).text == "&lt;b&gt;") }

  @Test("A command can be pasted into a shell")
  func command() {
    #expect(Shown.command(["a", "--b", "x y", "'; rm -rf ~", ""]) == #"a --b 'x y' ''\''; rm -rf ~' ''"#)
  }

  @Test("A chart has a bar for each value above zero, and its figures as text")
  func chart() {
    let chart = ConsoleChart("Refusals", [.init("a", .s0, [0, 3, 1]), .init("<b>", .s1, [UInt64.max / 4, 0, 0])])
    let text = chart.card.text
    #expect(text.ranges(of: "<rect").count == 3)
    #expect(text.contains("a 4") && text.contains("&lt;b&gt;") && !text.contains("<b>"))
    #expect(ConsoleChart("none", []).card.text.ranges(of: "<rect").isEmpty)
  }
}
