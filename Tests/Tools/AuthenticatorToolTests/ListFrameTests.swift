import AuthenticatorVault
import ByteCoding
import Foundation
import Testing

@testable import authenticator

@Suite struct ListFrameTests {
  private static let secret = Array("12345678901234567890".utf8)

  private func entry(_ issuer: String, digits: Int = 6, kind: VaultEntry.Kind = .totp(period: 30)) -> VaultEntry {
    VaultEntry(issuer: issuer, account: "", secret: Self.secret, kind: kind, digits: digits, at: 1)
  }

  private func lines(_ entries: [VaultEntry], columns: Int = 80, selected: Int? = nil) -> [String] {
    ListFrame(
      entries: entries, at: Date(timeIntervalSince1970: 59), columns: columns, isColored: false, selected: selected
    ).lines
  }

  @Test func `a code has all its digits, however many there are`() {
    let shown = lines((5...10).map { entry("A", digits: max(6, $0)) })
    for (line, digits) in zip(shown, [6, 6, 7, 8, 9, 10]) {
      let code = line.prefix { $0 != "━" && $0 != "╌" }.filter(\.isNumber)
      #expect(code == "1094287082".suffix(digits) || code.hasSuffix("94287082".suffix(digits)), "\(line)")
      #expect(code.count == digits)
    }
    #expect(Set(shown.map(ListFrame.width)).count == 1)
  }

  @Test func `no line is wider than its terminal`() {
    let entries = [entry("A long name of a service"), entry("Ten", digits: 10), entry("Count", kind: .hotp)]
    for columns in 20...60 {
      for line in lines(entries, columns: columns, selected: 0) { #expect(ListFrame.width(line) <= columns, "\(line)") }
      let screen = ListState(entries: entries).screen(
        at: Date(timeIntervalSince1970: 59), rows: 10, columns: columns, isColored: false)
      for line in screen { #expect(ListFrame.width(line) <= columns, "\(columns): \(line)") }
    }
    #expect(lines(entries, columns: 41)[0].contains("━"))
    #expect(lines(entries, columns: 30)[0].contains(" 1 s"))
    #expect(lines(entries, columns: 20)[0].contains("287 082"))
  }

  @Test func `the picture of a family stays one, and a lone joiner does not pass`() {
    let family = "👨\u{200D}👩\u{200D}👧"
    #expect(TerminalText.printable(family) == family && TerminalText.printable("❤\u{FE0F}\u{200D}🔥").count == 1)
    #expect(lines([entry(family)])[0].hasPrefix(family + "      "))
    #expect(ListFrame.width(family) == 2 && ListFrame.width("🇩🇪") == 2 && ListFrame.width("❤\u{FE0F}") == 2)
    for text in ["a\u{200D}b", "\u{200D}👩", "👩\u{200D}", "1\u{200D}2", "a\u{FE0F}\u{200D}👩"] {
      #expect(TerminalText.printable(text).unicodeScalars.contains("\u{FFFD}"))
    }
  }

  @Test func `a search needs no marks over letters`() throws {
    let entries = [entry("Ström", digits: 6), entry("Strom", digits: 7), entry("Größe", digits: 8)]
    var state = ListState(entries: entries)
    _ = state.press(Array("strom".utf8))
    #expect(state.found.map(\.issuer) == ["Ström", "Strom"])
    state = ListState(entries: entries)
    _ = state.press(Array("GRÖ".utf8))
    #expect(state.found.map(\.issuer) == ["Größe"])
    #expect(try EntryName.find("strom", in: entries).issuer == "Strom")
    #expect(try EntryName.find("ström", in: entries).issuer == "Ström")
    #expect(try EntryName.find("gro", in: entries).issuer == "Größe")
    #expect(try EntryName.find("strom", in: [entries[0]]).issuer == "Ström")
    #expect(try EntryName.find("trom", in: [entries[0]]).issuer == "Ström")
  }
}
