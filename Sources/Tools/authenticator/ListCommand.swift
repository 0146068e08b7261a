internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Show all codes: a live list on a terminal, otherwise one line for each.",
    discussion: """
      On a terminal: type to search, arrows move, Enter copies the code, Escape leaves. Codes from a counter are shown \
      by Enter only. --lines is for pickers, such as rofi, fzf and dmenu: `code --select` reads the line that they \
      return. Example:
        authenticator
        authenticator list --json
        authenticator list --lines | rofi -dmenu -i | authenticator code --select
      """)

  @OptionGroup var options: VaultOptions

  @Flag(help: "Print the list once, also on a terminal.")
  var once = false

  @Flag(help: "Print one name a line, without codes, for a picker.")
  var lines = false

  @OptionGroup var clearing: ClearingOptions

  func run() throws {
    guard !(lines && options.json) else {
      throw Failure(
        .usage, "--lines and --json exclude one another: a picker reads names alone", hint: "leave one of them out")
    }
    let clearing = ClipboardClearing(seconds: try clearing.seconds())
    let opened = try options.open()
    if options.json {
      JSONOutput.print(opened.vault.entries.map { ListedEntry($0) })
    } else if lines {
      for line in PickerLines(opened.vault.entries).lines { StandardOutput.write(line + "\n") }
    } else if !once, StandardOutput.isTerminal, let terminal = Terminal() {
      var list = LiveList(terminal: terminal, options: options, opened: opened, clearing: clearing)
      try list.run()
    } else {
      let frame = ListFrame(entries: opened.vault.entries, at: Date(), columns: 100, isColored: false)
      for line in frame.lines { StandardOutput.write(line + "\n") }
    }
  }
}

/// The lines of the list at one instant.
struct ListFrame {
  /// How many seconds before its end a code is marked.
  static let lastSeconds = 5
  /// The most of a name that is shown, in Unicode scalars. A line of any terminal is shorter.
  static let longestName = 500

  let lines: [String]

  /// How much of a line there is room for. A line never wraps: in a narrow terminal first the bar goes, then the
  /// seconds, and then the name is shortened further.
  private enum Detail: CaseIterable {
    case bar, seconds, code

    /// The columns after the code.
    var columns: Int {
      switch self {
      case .bar: 17
      case .seconds: 5
      case .code: 0
      }
    }
  }

  /// - Parameter selected: The index of the line that is marked; `nil` for none.
  init(entries: [VaultEntry], at time: Date, columns: Int, isColored: Bool, selected: Int? = nil) {
    let names = entries.map { entry in
      TerminalText.printable(String(entry.name.unicodeScalars.prefix(Self.longestName)))
    }
    let codes = entries.map { Self.code(of: $0, at: time) }
    let codeWidth = max(10, codes.map { $0.period == nil ? 0 : $0.text.count }.max() ?? 0)
    // A mark of two columns, two between name and code, and the last one for the cursor.
    func room(_ detail: Detail) -> Int { columns - 5 - codeWidth - detail.columns }
    let detail = Detail.allCases.first { room($0) >= 8 } ?? .code
    let width = min(max(names.map { Self.width($0) }.max() ?? 0, 8), max(1, room(detail)))
    lines = zip(names, codes).enumerated().map { index, entry in
      let (name, code) = entry
      let mark = selected == nil ? "" : index == selected ? "› " : "  "
      let shown = Self.shown(code, at: time, detail, width: codeWidth, isColored: isColored)
      let line = mark + Self.padded(name, to: width) + "  " + shown
      return index == selected && isColored ? "\u{1B}[1m" + line + "\u{1B}[22m" : line
    }
  }

  /// The code of an entry in groups, with its period; a text without one if the time has no part in it.
  private static func code(of entry: VaultEntry, at time: Date) -> (text: String, period: Int?) {
    guard let period = entry.period else {
      return (entry.kind == .hotp ? "counter \(entry.counter)" : "kind not known", nil)
    }
    return ((try? entry.code(at: time)).flatMap { $0 }.map(grouped) ?? "no code", period)
  }

  private static func shown(
    _ code: (text: String, period: Int?), at time: Date, _ detail: Detail, width: Int, isColored: Bool
  ) -> String {
    guard let period = code.period else {
      return detail == .bar ? code.text : padded(code.text, to: min(width + detail.columns, code.text.count))
    }
    let rest = period - Int(time.timeIntervalSince1970.rounded(.down)) % period
    let filled = (rest * 10 + period - 1) / period
    let bar = String(repeating: "━", count: filled) + String(repeating: "╌", count: 10 - filled)
    let seconds = "\(rest < 10 ? " " : "")\(rest) s"
    let text =
      switch detail {
      case .bar: "\(padded(code.text, to: width))  \(bar) \(seconds)"
      case .seconds: "\(padded(code.text, to: width)) \(seconds)"
      case .code: code.text
      }
    return isColored && rest <= lastSeconds ? "\u{1B}[31m" + text + "\u{1B}[39m" : text
  }

  /// `123 456`: in groups that are read at a glance.
  static func grouped(_ code: String) -> String {
    let size = code.count % 4 == 0 ? 4 : code.count % 5 == 0 ? 5 : 3
    guard code.count >= 6 else { return code }
    return stride(from: 0, to: code.count, by: size).map { start in
      String(code.dropFirst(start).prefix(size))
    }.joined(separator: " ")
  }

  /// The columns of a terminal that `text` takes: two for characters of East Asia and emoji.
  static func width(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

  private static func width(_ character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    let scalar = first.value
    // A picture is wide also if only a selector makes it one.
    if !first.isASCII, first.properties.isEmojiPresentation || character.unicodeScalars.contains("\u{FE0F}") {
      return 2
    }
    let isWide =
      (0x1100...0x115F).contains(scalar) || (0x2E80...0xA4CF).contains(scalar) || (0xAC00...0xD7A3).contains(scalar)
      || (0xF900...0xFAFF).contains(scalar) || (0xFE30...0xFE6F).contains(scalar)
      || (0xFF00...0xFF60).contains(scalar) || (0x1F300...0x1FAFF).contains(scalar)
      || (0x20000...0x3FFFD).contains(scalar)
    return isWide ? 2 : 1
  }

  /// `text` in at most `columns` columns, shortened with `…` if it is longer.
  static func shortened(_ text: String, to columns: Int) -> String {
    var (used, kept, end) = (0, text.startIndex, text.startIndex)
    while end < text.endIndex {
      used += width(text[end])
      guard used <= columns else { return columns < 1 ? "" : String(text[..<kept]) + "…" }
      text.formIndex(after: &end)
      // What still leaves a column for the mark.
      if used < columns { kept = end }
    }
    return text
  }

  /// `text` in exactly `columns` columns, shortened with `…` if it is longer.
  static func padded(_ text: String, to columns: Int) -> String {
    let text = shortened(text, to: columns)
    return text + String(repeating: " ", count: max(0, columns - width(text)))
  }
}

/// What the live list shows, and what each key does: a value without a terminal.
struct ListState {
  /// What the caller does after a key.
  enum Action: Equatable {
    case none
    case copy(VaultEntry)
    case leave
  }

  /// All entries.
  private(set) var entries: [VaultEntry]
  /// What is searched of each of them.
  private let texts: [String]
  private var reader = KeyReader()
  /// What was typed.
  private(set) var query = ""
  private(set) var selected = 0
  /// What happened last.
  var message = ""

  init(entries: [VaultEntry]) {
    self.entries = entries
    texts = entries.map { SearchText.plain(([$0.name] + $0.tags).joined(separator: " ")) }
  }

  /// The entries that have each word of the query in their name or groups, without regard to case and to marks over
  /// letters.
  var found: [VaultEntry] {
    let words = SearchText.plain(query).split(separator: " ")
    return zip(entries, texts).filter { _, text in words.allSatisfy { text.contains($0) } }.map(\.0)
  }

  /// What became of a code that was taken, for `message`: in a line of any width, the code of a counter stands first
  /// and whole, because it is used up.
  static func result(of entry: VaultEntry, code: String, _ outcome: String) -> String {
    let name = TerminalText.printable(String(entry.name.unicodeScalars.prefix(ListFrame.longestName)))
    let shown = entry.kind == .hotp ? ListFrame.grouped(code) + "  " : ""
    return "\(shown)\(ListFrame.shortened(name, to: 24)): \(outcome)"
  }

  /// The counter of `id` was taken, and the next one follows.
  mutating func countUp(_ id: String) {
    for index in entries.indices where entries[index].id == id {
      // The counter in the vault has a bound of its own, which is checked when it is taken.
      let (next, isBeyond) = entries[index].counter.addingReportingOverflow(1)
      entries[index].counter = isBeyond ? .max : next
    }
  }

  /// Handles what a terminal sent, which may be several keys, and returns what to do for each.
  mutating func type(_ bytes: [UInt8]) -> [Action] { reader.keys(in: bytes).map { press($0) } }

  /// Handles the bytes of one key, or of several characters of text.
  mutating func press(_ bytes: [UInt8]) -> Action {
    message = ""
    switch bytes {
    case [0x1B]:
      if query.isEmpty { return .leave }
      search("")
    case [0x03], [0x04]: return .leave
    case [0x0D], [0x0A]:
      let found = found
      return found.indices.contains(selected) ? .copy(found[selected]) : .none
    case Array("\u{1B}[A".utf8), Array("\u{1B}OA".utf8), [0x10]: selected = max(0, selected - 1)
    case Array("\u{1B}[B".utf8), Array("\u{1B}OB".utf8), [0x0E]: selected = min(max(0, found.count - 1), selected + 1)
    case [0x7F], [0x08]: search(String(query.dropLast()))
    case [0x15]: search("")
    default:
      // Other control sequences are keys that have no meaning here.
      guard let first = bytes.first, first >= 0x20 else { return .none }
      let text = String(decoding: bytes, as: UTF8.self)
      search(query + text.filter { !$0.unicodeScalars.contains(where: TerminalText.isUnsafe) })
    }
    return .none
  }

  private mutating func search(_ text: String) {
    query = String(text.prefix(100))
    selected = 0
  }

  /// The lines of the screen, from the top.
  func screen(at time: Date, rows: Int, columns: Int, isColored: Bool) -> [String] {
    let found = found
    let room = max(1, rows - 3)
    let first = max(0, min(selected - room / 2, found.count - room))
    let shown = Array(found.dropFirst(first).prefix(room))
    // The end of what was typed stays in sight.
    let typed = String(query.reversed())
    let shownQuery = String(ListFrame.shortened(typed, to: max(1, columns - 10)).reversed())
    var lines = [ListFrame.shortened("Search: \(shownQuery)▏", to: columns)]
    lines +=
      ListFrame(
        entries: shown, at: time, columns: columns, isColored: isColored, selected: selected - first
      ).lines
    if shown.isEmpty {
      let text = entries.isEmpty ? "  The vault is empty." : "  No entry has this in its name."
      lines.append(ListFrame.shortened(text, to: columns))
    }
    lines.append("")
    let more = found.count > shown.count ? "\(found.count) entries. " : ""
    let help = message.isEmpty ? more + "Enter copies, Escape leaves" : message
    lines.append(ListFrame.shortened(TerminalText.printable(String(help.unicodeScalars.prefix(1000))), to: columns))
    return lines
  }
}

/// The live list on a terminal.
struct LiveList {
  let terminal: Terminal
  let options: VaultOptions
  let clearing: ClipboardClearing
  private let key: VaultKey
  private var state: ListState

  init(terminal: Terminal, options: VaultOptions, opened: OpenVault, clearing: ClipboardClearing) {
    self.terminal = terminal
    self.options = options
    self.clearing = clearing
    key = opened.key
    state = ListState(entries: opened.vault.entries)
  }

  /// Shows it until the user leaves, or a signal asks the process to exit.
  mutating func run() throws {
    let isColored = ProcessInfo.processInfo.environment["NO_COLOR"] ?? "" == ""
    ExitSignals.hear()
    var list = self
    try terminal.withScreen {
      while !ExitSignals.heard {
        let (rows, columns) = terminal.size
        let lines = list.state.screen(at: Date(), rows: rows, columns: columns, isColored: isColored)
        terminal.write("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
        // A new second begins within this time.
        guard let keys = terminal.keys(within: 250) else { return }
        guard !keys.isEmpty else { continue }
        for action in list.state.type(keys) {
          switch action {
          case .none: break
          case .leave: return
          case .copy(let entry): try list.copy(entry)
          }
        }
      }
    }
  }

  private mutating func copy(_ entry: VaultEntry) throws {
    let code: ShownCode
    do {
      code = try ShownCode(entry, at: Date(), takingCounter: { try options.takeCounter(of: entry.id, with: key) })
    } catch let failure as Failure {
      state.message = failure.message
      return
    }
    if entry.kind == .hotp { state.countUp(entry.id) }
    // That of a counter is used up now, and is shown whatever becomes of the clipboard.
    do throws(Failure) {
      let place = try Clipboard.copy(code.code, terminal: terminal)
      let words = clearing.begin(code.code, at: place)
      state.message = ListState.result(of: entry, code: code.code, words)
    } catch {
      state.message = ListState.result(of: entry, code: code.code, "not copied: \(error.message)")
    }
  }
}
