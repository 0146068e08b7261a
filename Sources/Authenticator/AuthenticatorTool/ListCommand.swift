internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import CommandSupport
internal import Foundation

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Show all codes: a live list on a terminal, otherwise one line for each.",
    discussion: """
      On a terminal: type to search, arrows move, Enter copies the code, Escape leaves. Codes from a counter are shown \
      by Enter only. Example:
        authenticator
        authenticator list --json
      """)

  @OptionGroup var options: VaultOptions

  @Flag(help: "Print the list once, also on a terminal.")
  var once = false

  func run() throws {
    let opened = try options.open()
    if options.json {
      JSONOutput.print(opened.vault.entries.map { ListedEntry($0) })
    } else if !once, StandardOutput.isTerminal, let terminal = Terminal() {
      var list = LiveList(terminal: terminal, options: options, opened: opened)
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

  let lines: [String]

  /// - Parameter selected: The index of the line that is marked; `nil` for none.
  init(entries: [VaultEntry], at time: Date, columns: Int, isColored: Bool, selected: Int? = nil) {
    let width = min(max(entries.map { Self.width($0.name) }.max() ?? 0, 8), max(8, columns - 32))
    lines = entries.enumerated().map { index, entry in
      let mark = selected == nil ? "" : index == selected ? "› " : "  "
      let name = Self.padded(TerminalText.printable(entry.name), to: width)
      let line = mark + name + "  " + Self.code(of: entry, at: time, isColored: isColored)
      return index == selected && isColored ? "\u{1B}[1m" + line + "\u{1B}[22m" : line
    }
  }

  private static func code(of entry: VaultEntry, at time: Date, isColored: Bool) -> String {
    guard let period = entry.period else {
      return entry.kind == .hotp ? "counter \(entry.counter)" : "kind not known"
    }
    let code = (try? entry.code(at: time)).flatMap { $0 } ?? "no code"
    let rest = period - Int(time.timeIntervalSince1970.rounded(.down)) % period
    let filled = (rest * 10 + period - 1) / period
    let bar = String(repeating: "━", count: filled) + String(repeating: "╌", count: 10 - filled)
    let text = "\(padded(grouped(code), to: 10))  \(bar) \(rest < 10 ? " " : "")\(rest) s"
    return isColored && rest <= lastSeconds ? "\u{1B}[31m" + text + "\u{1B}[39m" : text
  }

  /// `123 456`: in groups that are read at a glance.
  static func grouped(_ code: String) -> String {
    let size = code.count % 4 == 0 ? 4 : 3
    guard code.count >= 6 else { return code }
    return stride(from: 0, to: code.count, by: size).map { start in
      String(code.dropFirst(start).prefix(size))
    }.joined(separator: " ")
  }

  /// The columns of a terminal that `text` takes: two for characters of East Asia and emoji.
  static func width(_ text: String) -> Int {
    text.reduce(0) { columns, character in
      let scalar = character.unicodeScalars.first?.value ?? 0
      let isWide =
        (0x1100...0x115F).contains(scalar) || (0x2E80...0xA4CF).contains(scalar) || (0xAC00...0xD7A3).contains(scalar)
        || (0xF900...0xFAFF).contains(scalar) || (0xFE30...0xFE6F).contains(scalar)
        || (0xFF00...0xFF60).contains(scalar) || (0x1F300...0x1FAFF).contains(scalar)
      return columns + (isWide ? 2 : 1)
    }
  }

  /// `text` in exactly `columns` columns, shortened with `…` if it is longer.
  static func padded(_ text: String, to columns: Int) -> String {
    var text = text
    if width(text) > columns {
      while width(text) > columns - 1 { text.removeLast() }
      text += "…"
    }
    return text + String(repeating: " ", count: columns - width(text))
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
  var entries: [VaultEntry]
  /// What was typed.
  private(set) var query = ""
  private(set) var selected = 0
  /// What happened last.
  var message = ""

  init(entries: [VaultEntry]) { self.entries = entries }

  /// The entries that have each word of the query in their name or groups.
  var found: [VaultEntry] {
    let words = query.lowercased().split(separator: " ")
    return entries.filter { entry in
      let text = ([entry.name] + entry.tags).joined(separator: " ").lowercased()
      return words.allSatisfy { text.contains($0) }
    }
  }

  /// Handles the bytes of one or more keys.
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
    var lines = ["Search: \(query)▏"]
    lines +=
      ListFrame(
        entries: shown, at: time, columns: columns, isColored: isColored, selected: selected - first
      ).lines
    if shown.isEmpty { lines.append(entries.isEmpty ? "  The vault is empty." : "  No entry has this in its name.") }
    lines.append("")
    let more = found.count > shown.count ? "\(found.count) entries. " : ""
    let help = message.isEmpty ? more + "Enter copies, Escape leaves" : message
    lines.append(TerminalText.printable(String(help.prefix(columns))))
    return lines
  }
}

/// The live list on a terminal.
struct LiveList {
  let terminal: Terminal
  let options: VaultOptions
  private let key: VaultKey
  private var state: ListState

  init(terminal: Terminal, options: VaultOptions, opened: OpenVault) {
    self.terminal = terminal
    self.options = options
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
        switch list.state.press(keys) {
        case .none: break
        case .leave: return
        case .copy(let entry): try list.copy(entry)
        }
      }
    }
  }

  private mutating func copy(_ entry: VaultEntry) throws {
    do {
      let code = try ShownCode(entry, at: Date(), takingCounter: { try options.takeCounter(of: entry.id, with: key) })
      try Clipboard.copy(code.code, terminal: terminal)
      state.message = "\(entry.name): copied"
      if entry.kind == .hotp {
        state.message = "\(entry.name): \(ListFrame.grouped(code.code)), copied"
        state.entries = state.entries.map { other in
          var other = other
          if other.id == entry.id { other.counter += 1 }
          return other
        }
      }
    } catch let failure as Failure {
      state.message = failure.message
    }
  }
}
