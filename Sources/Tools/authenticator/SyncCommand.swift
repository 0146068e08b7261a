internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

struct SyncCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Exchange the vault with other machines through a folder that a file synchronizer carries.",
    discussion: """
      The folder has one file, encrypted like the vault. Conflict copies of it with the names that synchronizers give \
      them are merged and removed; other files are left. On a second \
      machine the first call makes its vault, with the passphrase of the first. Example:
        authenticator sync ~/Nextcloud/codes
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "A folder, such as one in that of Syncthing, Nextcloud or Dropbox. It is made if it is not there.")
  var folder: String

  @Flag(help: "Bring the entries of this vault into that of the folder, which has another key, and use its key.")
  var join = false

  func run() throws {
    var isFolder: ObjCBool = false
    let isThere = FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder)
    guard !isThere || isFolder.boolValue else {
      throw Failure(.noInput, "\(folder) is not a folder", hint: "name the folder that the synchronizer carries")
    }
    let local = try options.folder()
    let present = try local.read()
    if !isThere { try checkPlace(hasVault: present != nil) }
    let exchange = FolderExchange(folder: folder, local: local)
    let shared = try exchange.shared()
    guard let file = present ?? shared else {
      throw Failure(
        .noInput, "there is no vault, neither here nor in \(folder)",
        hint: "`authenticator add`, `scan FILE` or `import FILE` make one with the first entry")
    }
    var opened = try options.open(file, at: present == nil ? exchange.place : local.vaultPath)
    let own = present == nil ? nil : opened.key
    if let shared, shared.keyID != opened.key.id {
      guard join else { throw Failure(VaultError.otherKey, at: exchange.place) }
      let theirs = try options.openOther(shared, at: exchange.place)
      opened = OpenVault(vault: opened.vault, key: theirs.key, slots: theirs.slots)
    }
    // Not before the passphrase is right: a command that fails leaves nothing.
    if !isThere { try makeFolder() }
    // Persons type passphrases: what another process writes until here is read again under the lock.
    let report = try local.locked { try exchange.run(opened, replacing: own) }
    tell(report)
  }

  /// Checks that there is a vault for a new folder, and a folder to make it in. A mistyped or unmounted path must not
  /// become a folder that no synchronizer transfers.
  private func checkPlace(hasVault: Bool) throws(Failure) {
    guard hasVault else {
      throw Failure(
        .noInput, "\(folder) is not there, and there is no vault to put into it",
        hint: "name the folder that the synchronizer carries")
    }
    let parent = (folder as NSString).deletingLastPathComponent
    var isFolder: ObjCBool = false
    let isThere = FileManager.default.fileExists(atPath: parent.isEmpty ? "." : parent, isDirectory: &isFolder)
    guard isThere, isFolder.boolValue else { throw unmade("there is no folder \(parent)") }
  }

  /// Makes the folder unless it has come in the meantime.
  private func makeFolder() throws(Failure) {
    guard !FileManager.default.fileExists(atPath: folder) else { return }
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch {
      throw unmade(error.localizedDescription)
    }
    StandardError.write(TerminalText.printable("This makes the folder \(folder).") + "\n")
  }

  private func unmade(_ reason: String) -> Failure {
    Failure(
      .noInput, "cannot make the folder \(folder): \(reason)", hint: "the folder that it stands in must be there")
  }

  private struct Result: Encodable {
    let received: Bool
    let sent: Bool
    let merged: [String]
    let left: [String]
    /// The entries that another machine has removed; not there if there are none.
    let removed: [String]?
  }

  private func tell(_ report: VaultExchange.Report) {
    for (place, error) in report.left.sorted(by: { $0.key < $1.key }) {
      StandardError.write(TerminalText.printable("warning: \(place) was left: \(error)") + "\n")
    }
    for name in report.removed {
      let text = "\(name) was removed on another machine; `authenticator restore` brings it back within 30 days"
      StandardError.write(TerminalText.printable("note: \(text)") + "\n")
    }
    if options.json {
      JSONOutput.print(
        Result(
          received: report.hasReceived, sent: report.hasSent, merged: report.merged, left: report.left.keys.sorted(),
          removed: report.removed.isEmpty ? nil : report.removed))
      return
    }
    let words =
      switch (report.hasReceived, report.hasSent) {
      case (true, true): "received and sent changes"
      case (true, false): "received changes"
      case (false, true): "sent changes"
      case (false, false): "nothing has changed"
      }
    let copies = report.merged.isEmpty ? "" : "; \(report.merged.count) conflict copies merged and removed"
    StandardOutput.write(words + copies + "\n")
  }
}

extension VaultOptions {
  /// Opens the vault of another machine, whose passphrase is another one.
  func openOther(_ file: VaultFile, at path: String) throws(Failure) -> OpenVault {
    let key =
      if let key = SessionKeyring.key(file.keyID) { key } else {
        try file.key(
          passphrase: Self.ask(
            "Passphrase of \(path): ",
            hint: "run this on a terminal; --passphrase-file names a file with the passphrase of this machine's vault"),
          at: path)
      }
    return try file.opened(with: key, at: path)
  }
}
