internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

struct CodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "code",
    abstract: "Print the code of an entry.",
    discussion: """
      A code from a counter is used up by this: the next call prints the next one. --copy clears the clipboard 30 \
      seconds later, unless something else was copied since. --select reads the line that a picker returns. Example:
        authenticator code github
        authenticator code github --copy
        authenticator code github --next
        authenticator list --lines | fzf | authenticator code --select --copy
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "The name of the entry, or an unambiguous part of it.")
  var name: String?

  @Flag(help: "Read the line of the entry from standard input, as `list --lines` prints it.")
  var select = false

  @Flag(help: "The code after the present one; when it begins is printed to standard error.")
  var next = false

  @Flag(help: "Put the code into the clipboard and print nothing.")
  var copy = false

  @OptionGroup var clearing: ClearingOptions

  func run() throws {
    guard !(copy && options.json) else {
      throw Failure(.usage, "--copy prints no code, and --json does", hint: "leave one of them out")
    }
    let clearing = ClipboardClearing(seconds: try clearing.seconds())
    let find = try choice()
    let opened = try options.open()
    let entry = try find(opened.vault.entries)
    let now = Date()
    let shown =
      next
      ? try ShownCode(nextOf: entry, at: now)
      : try ShownCode(entry, at: now, takingCounter: { try options.takeCounter(of: entry.id, with: opened.key) })
    if copy { try copy(shown, of: entry, clearing) }
    if options.json {
      JSONOutput.print(shown)
    } else {
      if !copy { StandardOutput.write(shown.code + "\n") }
      if let words = shown.beginning(after: now) { StandardError.write("\(words)\n") }
    }
  }

  /// How the entry is found. The line of a picker is read before the vault is opened: until then the picker may have the
  /// terminal.
  private func choice() throws(Failure) -> ([VaultEntry]) throws(Failure) -> VaultEntry {
    switch (name, select) {
    case (let name?, false): return { entries throws(Failure) in try EntryName.find(name, in: entries) }
    case (nil, true):
      let line = try InputFile.firstLine("-")
      return { entries throws(Failure) in try PickerLines(entries).entry(of: line) }
    default:
      throw Failure(
        .usage, "name one entry, or choose it with --select",
        hint: "authenticator code NAME; `authenticator list` shows the names")
    }
  }

  private func copy(_ shown: ShownCode, of entry: VaultEntry, _ clearing: ClipboardClearing) throws(Failure) {
    do throws(Failure) {
      let place = try Clipboard.copy(shown.code)
      let words = clearing.begin(shown.code, at: place)
      if StandardError.isTerminal || place == .terminal { StandardError.write("\(words)\n") }
    } catch {
      // Its counter is used up: without this the code would be lost.
      if entry.kind == .hotp { StandardOutput.write(shown.code + "\n") }
      throw error
    }
  }
}

extension VaultOptions {
  /// Takes the counter of an entry, which is saved before the code is shown: a code is never shown twice.
  func takeCounter(of id: String, with key: VaultKey) throws -> UInt64 {
    try change(with: key) { vault in
      do throws(VaultError) { return try vault.takeCounter(of: id) } catch { throw Failure(error, at: "entry") }
    }
  }
}

/// A code, as JSON shows it.
struct ShownCode: Encodable {
  let id: String
  let issuer: String
  let account: String
  let code: String
  /// Seconds until the code after this one; `nil` if the time has no part in it.
  let validFor: Int?
  /// Seconds until this code begins; `nil` for the present one.
  let beginsIn: Int?

  /// The code at `time`. That of a counter takes the counter.
  init(_ entry: VaultEntry, at time: Date, takingCounter: () throws -> UInt64) throws {
    var entry = entry
    if entry.kind == .hotp { entry.counter = try takingCounter() }
    self.init(entry, code: try Self.code(of: entry, at: time), validFor: Self.rest(of: entry, at: time), beginsIn: nil)
  }

  /// The code that follows the one at `time`.
  ///
  /// - Throws: `.usage` for a code from a counter, which is the next one already.
  init(nextOf entry: VaultEntry, at time: Date) throws(Failure) {
    guard entry.kind != .hotp else {
      throw Failure(
        .usage, "--next: codes of \(entry.name.debugDescription) are from a counter",
        hint: "each call of `authenticator code` prints the next one")
    }
    let rest = Self.rest(of: entry, at: time) ?? 0
    let code = try Self.code(of: entry, at: time.addingTimeInterval(Double(rest)))
    self.init(entry, code: code, validFor: entry.period.map { rest + $0 }, beginsIn: rest)
  }

  private init(_ entry: VaultEntry, code: String, validFor: Int?, beginsIn: Int?) {
    id = entry.id
    issuer = entry.issuer
    account = entry.account
    self.code = code
    self.validFor = validFor
    self.beginsIn = beginsIn
  }

  /// When the code begins, for a person; `nil` for the present one.
  func beginning(after time: Date) -> String? {
    guard let beginsIn else { return nil }
    let start = Timestamp(seconds: Int64(time.timeIntervalSince1970.rounded(.down)) + Int64(beginsIn))
    return "begins in \(beginsIn) s, at \(start)"
  }

  private static func code(of entry: VaultEntry, at time: Date) throws(Failure) -> String {
    let code: String?
    do { code = try entry.code(at: time) } catch { throw Failure(.internalError, "\(error)", hint: "set the clock") }
    guard let code else {
      throw Failure(
        .usage, "codes of \(entry.name.debugDescription) are of a kind that this program does not know",
        hint: "the entry is kept, and `authenticator export` writes it again")
    }
    return code
  }

  /// The seconds that are left of the code at `time`.
  private static func rest(of entry: VaultEntry, at time: Date) -> Int? {
    entry.period.map { $0 - Int(time.timeIntervalSince1970.rounded(.down)) % $0 }
  }
}
