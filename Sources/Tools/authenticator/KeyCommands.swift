internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
internal import Glibc

struct UnlockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Keep the vault open for a while: its key stays in the kernel's session keyring.",
    discussion: """
      The key is never written to a disk. When the time is over, the kernel removes it. Example:
        authenticator unlock --for 15m
      """)

  @OptionGroup var options: VaultOptions

  @Option(name: .customLong("for"), help: ArgumentHelp("How long: 90s, 15m or 8h.", valueName: "time"))
  var time = "15m"

  func run() throws {
    let duration = try Self.duration(time)
    let opened = try options.open()
    do throws(SessionKeyring.Unavailable) {
      try SessionKeyring.keep(opened.key, for: duration)
    } catch {
      throw Failure(
        .unavailable, "the kernel keeps no key here: \(String(cString: strerror(error.number)))",
        hint: "each command asks for the passphrase; --passphrase-file names a file with it")
    }
    let end = Timestamp.now().advanced(by: duration).wholeSecond
    if options.json {
      JSONOutput.print(["until": "\(end)"])
    } else {
      StandardOutput.write("open until \(end); `authenticator lock` closes it\n")
    }
  }

  /// 1 second to 24 hours.
  static func duration(_ text: String) throws(Failure) -> Duration {
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600]
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int(text.dropLast()), (1...86_400).contains(count),
      count * unit <= 86_400
    else { throw Failure(.usage, "--for \(text): a time up to 24h, such as 90s, 15m or 8h") }
    return .seconds(count * unit)
  }
}

struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock",
    abstract: "Remove the key of the vault from the kernel's session keyring.",
    discussion: """
      Example:
        authenticator lock
      """)

  @OptionGroup var options: VaultOptions

  func run() throws {
    let folder = try options.folder()
    let wasOpen = try folder.read().map { SessionKeyring.forget($0.keyID) } ?? false
    if options.json {
      JSONOutput.print(["wasOpen": wasOpen])
    } else {
      StandardOutput.write(wasOpen ? "locked\n" : "it was not open\n")
    }
  }
}

struct PassphraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "passphrase",
    abstract: "Change the passphrase of the vault.",
    discussion: """
      The key of the vault stays the same: an older copy of the file still opens with its older passphrase. \
      `authenticator sync` brings the new passphrase to the other machines. Example:
        authenticator passphrase
        authenticator passphrase --passphrase-file old.txt \\
          --new-passphrase-file new.txt
      """)

  @OptionGroup var options: VaultOptions

  @Option(help: ArgumentHelp("A file whose first line is the new passphrase.", valueName: "file"))
  var newPassphraseFile: String?

  func run() throws {
    let folder = try options.folder()
    guard let file = try folder.read() else {
      _ = try options.open()
      return
    }
    // Also where the vault is open: a terminal that was left alone must not lock its owner out.
    let present = try options.passphrase("Present passphrase: ")
    let key = try file.key(passphrase: present, at: folder.vaultPath)
    let new = try newPassphrase()
    let slots = try VaultOptions.slots(key, new)
    try folder.locked {
      guard let present = try folder.read() else { throw Failure(.noInput, "the vault is gone") }
      do {
        let changed = VaultFile(
          try present.vault(key: key), key: key,
          slots: .init(slots.slots, changedAt: max(slots.changedAt, VaultTime.next(present.slots.changedAt))))
        // Opened as it will be next time, before it replaces the present one.
        guard try VaultFile(bytes: changed.bytes).key(passphrase: new) == key else { throw VaultError.notAuthentic }
        try folder.write(changed)
      } catch let error as VaultError {
        throw Failure(error, at: folder.vaultPath)
      }
    }
    if options.json { JSONOutput.print(["changed": true]) } else { StandardOutput.write("passphrase changed\n") }
  }

  private func newPassphrase() throws(Failure) -> String {
    guard let newPassphraseFile else {
      return try VaultOptions.askTwice("New passphrase: ", file: "--new-passphrase-file")
    }
    let new = try InputFile.firstLine(newPassphraseFile)
    guard !new.isEmpty else { throw Failure(.usage, "the first line of \(newPassphraseFile) is empty") }
    return new
  }
}
