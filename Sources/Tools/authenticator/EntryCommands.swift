internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OneTimePasswords
internal import VaultFormats

struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Change the names, note, groups or counter of an entry.",
    discussion: """
      Secret, algorithm, digits and period belong to the service: for another one, add a new entry. Example:
        authenticator edit github --account alice@example.com --tag work --tag code
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "The name of the entry, or an unambiguous part of it.")
  var name: String

  @Option(help: "The service.")
  var issuer: String?

  @Option(help: "The name at the service.")
  var account: String?

  @Option(help: "Your own text; empty removes it.")
  var note: String?

  @Option(help: ArgumentHelp("A group, instead of the present ones; may be repeated.", valueName: "group"))
  var tag: [String] = []

  @Flag(help: "Remove all groups.")
  var noTags = false

  @Option(help: "The next counter of hotp. It only grows.")
  var counter: UInt64?

  func run() throws {
    guard issuer != nil || account != nil || note != nil || !tag.isEmpty || noTags || counter != nil else {
      throw Failure(.usage, "nothing to change", hint: "authenticator edit NAME --account NEW")
    }
    guard tag.isEmpty || !noTags else { throw Failure(.usage, "--tag and --no-tags exclude one another") }
    // No file of another authenticator has a group without a name.
    guard !tag.contains("") else {
      throw Failure(.usage, "--tag: a group has a name", hint: "--no-tags removes all groups")
    }
    // Only of what is changed: an entry of another program may have a longer text.
    if let fault = EntryBounds.fault(issuer: issuer, account: account, note: note, tags: Set(tag).sorted()) {
      throw Failure(.usage, fault)
    }
    let (before, after) = try options.change { vault in
      let entry = try EntryName.find(name, in: vault.entries)
      if let counter {
        guard entry.kind == .hotp else {
          throw Failure(.usage, "codes of \(entry.name.debugDescription) have no counter")
        }
        guard counter >= entry.counter else {
          throw Failure(.usage, "--counter \(counter): the counter is at \(entry.counter), and it only grows")
        }
      }
      do throws(VaultError) {
        try vault.edit(entry.id, at: VaultOptions.now, change)
      } catch {
        throw Failure(error, at: "entry")
      }
      return (entry.name, vault[entry.id] ?? entry)
    }
    if options.json {
      JSONOutput.print(ListedEntry(after))
    } else {
      StandardOutput.write(
        TerminalText.printable(before == after.name ? "\(before)  changed" : "\(before)  is now \(after.name)") + "\n")
    }
  }

  private func change(_ entry: inout VaultEntry) {
    entry.issuer = issuer ?? entry.issuer
    entry.account = account ?? entry.account
    entry.note = note ?? entry.note
    if noTags || !tag.isEmpty { entry.tags = tag }
    entry.counter = counter ?? entry.counter
  }
}

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm",
    abstract: "Remove an entry, here and on the other devices.",
    discussion: """
      `authenticator restore` brings it back within 30 days. Turn the second factor off at the service first. Example:
        authenticator rm github
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "The names of the entries, or unambiguous parts of them.")
  var names: [String]

  func run() throws {
    let removed = try options.change { vault in
      let entries = try names.map { name throws(Failure) in try EntryName.find(name, in: vault.entries) }
      for entry in entries where vault[entry.id] != nil { try vault.remove(entry.id, at: VaultOptions.now) }
      return entries
    }
    if options.json {
      JSONOutput.print(removed.map(ListedEntry.init))
    } else {
      for entry in removed {
        StandardOutput.write(TerminalText.printable("\(entry.name)  removed; it can be restored for 30 days") + "\n")
      }
    }
  }
}

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restore a removed entry, or list those that can be restored.",
    discussion: """
      Example:
        authenticator restore
        authenticator restore github
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "The name of the entry, or an unambiguous part of it.")
  var name: String?

  func run() throws {
    guard let name else {
      try list()
      return
    }
    let entry = try options.change { vault in
      let entry = try EntryName.find(name, in: vault.removed.map(\.entry))
      try vault.restore(entry.id, at: VaultOptions.now)
      return entry
    }
    if options.json {
      JSONOutput.print(ListedEntry(entry))
    } else {
      StandardOutput.write(TerminalText.printable("\(entry.name)  restored") + "\n")
    }
  }

  private func list() throws {
    let removed = try options.open().vault.removed
    if options.json {
      JSONOutput.print(removed.map { ListedEntry($0.entry, removedAt: $0.at) })
      return
    }
    for (entry, time) in removed {
      let last = Timestamp(milliseconds: time + Vault.restorableFor).wholeSecond
      StandardOutput.write(TerminalText.printable("\(entry.name)  can be restored until \(last)") + "\n")
    }
  }
}

/// An entry, as JSON shows it: without its secret.
struct ListedEntry: Encodable {
  let id: String
  let issuer: String
  let account: String
  let type: String
  let algorithm: String
  let digits: Int
  let period: Int?
  let counter: UInt64?
  let note: String
  let tags: [String]
  let removed: String?

  init(_ entry: VaultEntry) { self.init(entry, removedAt: nil) }

  init(_ entry: VaultEntry, removedAt: Int64?) {
    id = entry.id
    issuer = entry.issuer
    account = entry.account
    type =
      switch entry.kind {
      case .totp: "totp"
      case .hotp: "hotp"
      case .steam: "steam"
      case .other(let name): name
      }
    algorithm = entry.algorithm.rawValue
    digits = entry.digits
    period = entry.period
    counter = entry.kind == .hotp ? entry.counter : nil
    note = entry.note
    tags = entry.tags
    removed = removedAt.map { "\(Timestamp(milliseconds: $0).wholeSecond)" }
  }
}
