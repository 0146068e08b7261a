import ByteCoding
import ConsoleServing
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

  @Test(
    "An export has no formula at the beginning of a cell, by any separator",
    arguments: [
      ("=1", "'=1"), ("+1", "'+1"), ("-1", "'-1"), ("@a", "'@a"), ("\t=1", "\"'\t'=1\""), ("\r=1", "\"'\r'=1\""),
      ("a;=1", "\"a;'=1\""), ("a\t+1", "\"a\t'+1\""), ("a\n@b", "\"a\n'@b\""), ("a\r\n-1", "\"a\r\n'-1\""),
      ("a; \"=1", "\"a; \"\"'=1\""), (" =1", " '=1"), ("\"=1", "\"\"\"'=1\""), ("a=1", "a=1"), ("a;b", "\"a;b\""),
      ("x-y", "x-y"), ("é", "é"), ("", ""),
    ])
  func formulas(_ text: String, _ field: String) {
    let table = ConsoleTable("t", ["a"], [[.init(text)]], whenEmpty: "")
    #expect(table.csv == "a\r\n\(field)\r\n")
  }

  @Test("An export has hashes unchanged, and no column of forms")
  func columns() {
    let rows: [[ConsoleTable.Cell]] = [
      [.init(hash: "-a_B9", "x"), .init("", "<form>"), .init(1)],
      [.init(hash: "-a|b", "x"), .init("", "<form>"), .init(2)],
    ]
    let table = ConsoleTable("t", ["key", "", "n"], rows, whenEmpty: "")
    #expect(table.csv == "key,n\r\n-a_B9,1\r\n'-a|b,2\r\n")
    #expect(table.markup.text.contains("<form>"))
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
