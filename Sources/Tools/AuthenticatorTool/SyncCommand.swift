internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
internal import VaultSync

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

  /// The name of the file in the folder.
  static let fileName = "authenticator.vault"

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
    if !isThere { try makeFolder(for: local) }
    let shared = try VaultFolder.read(folder + "/" + Self.fileName)
    guard let file = try local.read() ?? shared else {
      throw Failure(
        .noInput, "there is no vault, neither here nor in \(folder)",
        hint: "`authenticator add`, `scan FILE` or `import FILE` make one with the first entry")
    }
    var opened = try options.open(file, at: try local.read() == nil ? folder + "/" + Self.fileName : local.vaultPath)
    if let shared, shared.keyID != opened.key.id {
      guard join else { throw Failure(VaultError.otherKey, at: folder + "/" + Self.fileName) }
      let theirs = try options.openOther(shared, at: folder + "/" + Self.fileName)
      opened = OpenVault(vault: opened.vault, key: theirs.key, slots: theirs.slots)
    }
    let report = try local.locked { try exchange(opened, local: local) }
    tell(report)
  }

  /// Makes the folder if its parent exists. A mistyped or unmounted path must not become a folder that no synchronizer
  /// transfers.
  private func makeFolder(for local: VaultFolder) throws(Failure) {
    guard try local.read() != nil else {
      throw Failure(
        .noInput, "\(folder) is not there, and there is no vault to put into it",
        hint: "name the folder that the synchronizer carries")
    }
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch {
      throw Failure(
        .noInput, "cannot make the folder \(folder): \(error.localizedDescription)",
        hint: "the folder that it stands in must be there")
    }
    StandardError.write(TerminalText.printable("This makes the folder \(folder).") + "\n")
  }

  /// Exchanges while the vault is locked. `known` has the key, and what was read before the lock.
  private func exchange(_ known: OpenVault, local: VaultFolder) throws -> VaultExchange.Report {
    var slots = known.slots
    var vault = known.vault
    var present: VaultFile?
    if let file = try local.read(), file.keyID == known.key.id {
      vault = try file.opened(with: known.key, at: local.vaultPath).vault
      (slots, present) = (file.slots, file)
    }
    var sharedSlots: VaultFile.Slots?
    func open(_ data: Data) throws(VaultError) -> Vault {
      let file = try VaultFile(bytes: data)
      let vault = try file.vault(key: known.key)
      sharedSlots = sharedSlots ?? file.slots
      if file.slots.changedAt > slots.changedAt { slots = file.slots }
      return vault
    }
    let key = known.key
    let place = folder + "/" + Self.fileName
    do {
      // The slots of the folder are known only after its vault was opened, so a second exchange may be needed.
      var report = try VaultExchange.run(
        &vault, through: FolderStore(folder: folder), name: Self.fileName, open: open,
        seal: { VaultFile($0, key: key, slots: slots).bytes },
        save: { try local.write(VaultFile($0, key: key, slots: slots)) })
      if present.map({ $0.slots != slots }) ?? true, !report.hasReceived {
        try local.write(VaultFile(vault, key: key, slots: slots))
      }
      if !report.hasSent, sharedSlots != slots {
        try FolderStore(folder: folder).set(VaultFile(vault, key: key, slots: slots).bytes, forKey: Self.fileName)
        report.hasSent = true
      }
      return report
    } catch let error as VaultError {
      throw Failure(error, at: place)
    } catch let error as UbiquitousStoreError {
      throw Failure(error)
    }
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
        try file.key(passphrase: Self.ask("Passphrase of \(path): ", file: "--vault"), at: path)
      }
    return try file.opened(with: key, at: path)
  }
}
