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
      A code from a counter is used up by this: the next call prints the next one. Example:
        authenticator code github
        authenticator code github --copy
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "The name of the entry, or an unambiguous part of it.")
  var name: String

  @Flag(help: "Put the code into the clipboard and print nothing.")
  var copy = false

  func run() throws {
    let opened = try options.open()
    let entry = try EntryName.find(name, in: opened.vault.entries)
    let shown = try ShownCode(
      entry, at: Date(), takingCounter: { try options.takeCounter(of: entry.id, with: opened.key) })
    if copy { try copy(shown, of: entry) }
    if options.json {
      JSONOutput.print(shown)
    } else if !copy {
      StandardOutput.write(shown.code + "\n")
    }
  }

  private func copy(_ shown: ShownCode, of entry: VaultEntry) throws(Failure) {
    do throws(Failure) {
      let place = try Clipboard.copy(shown.code)
      if place == .terminal { StandardError.write("\(place.words)\n") }
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
  /// Seconds until the next code; `nil` if the time has no part in it.
  let validFor: Int?

  /// The code at `time`. That of a counter takes the counter.
  init(_ entry: VaultEntry, at time: Date, takingCounter: () throws -> UInt64) throws {
    var entry = entry
    if entry.kind == .hotp { entry.counter = try takingCounter() }
    let code: String?
    do { code = try entry.code(at: time) } catch { throw Failure(.internalError, "\(error)", hint: "set the clock") }
    guard let code else {
      throw Failure(
        .usage, "codes of \(entry.name.debugDescription) are of a kind that this program does not know",
        hint: "the entry is kept, and `authenticator export` writes it again")
    }
    self.code = code
    id = entry.id
    issuer = entry.issuer
    account = entry.account
    validFor = entry.period.map { $0 - Int(time.timeIntervalSince1970.rounded(.down)) % $0 }
  }
}
