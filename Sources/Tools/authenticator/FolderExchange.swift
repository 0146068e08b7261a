internal import AuthenticatorVault
internal import Commands
internal import Foundation

/// The exchange of the vault of this machine with the one in a folder that a file synchronizer carries.
struct FolderExchange {
  /// The name of the file in the folder.
  static let fileName = "authenticator.vault"

  let folder: String
  let local: VaultFolder

  /// The path of the file in the folder.
  var place: String { folder + "/" + Self.fileName }
  private var store: FolderStore { FolderStore(folder: folder) }

  /// The vault in the folder; `nil` if there is none yet.
  func shared() throws(Failure) -> VaultFile? {
    do {
      return try store.data(forKey: Self.fileName).map { try VaultFile(bytes: $0) }
    } catch let error as VaultError {
      throw Failure(error, at: place)
    } catch let error as UbiquitousStoreError {
      throw Failure(error)
    } catch {
      throw Failure(.unavailable, "\(place): \(error.localizedDescription)")
    }
  }

  /// Exchanges. The caller holds the lock of the vault.
  ///
  /// - Parameters:
  ///   - known: The key that both vaults have afterwards, and what was read before the lock was taken.
  ///   - own: The key that the vault of this machine had then; `nil` if there was no vault.
  /// - Throws: `.retryLater` if the vault of this machine has a third key by now. Nothing then is written.
  func run(_ known: OpenVault, replacing own: VaultKey?) throws -> VaultExchange.Report {
    var slots = known.slots
    let (contents, present) = try localVault(known, replacing: own)
    var vault = contents
    var sharedSlots: VaultFile.Slots?
    if let present { slots = present }
    func open(_ data: Data) throws(VaultError) -> Vault {
      let file = try VaultFile(bytes: data)
      let vault = try file.vault(key: known.key)
      sharedSlots = sharedSlots ?? file.slots
      if file.slots.supersede(slots) { slots = file.slots }
      return vault
    }
    let key = known.key
    do {
      // The slots of the folder are known only after its vault was opened, so a second exchange may be needed.
      var report = try VaultExchange.run(
        &vault, through: store, name: Self.fileName, open: open,
        seal: { VaultFile($0, key: key, slots: slots).bytes },
        save: { try local.write(VaultFile($0, key: key, slots: slots)) })
      if present != slots, !report.hasReceived { try local.write(VaultFile(vault, key: key, slots: slots)) }
      if !report.hasSent, sharedSlots != slots {
        try store.set(VaultFile(vault, key: key, slots: slots).bytes, forKey: Self.fileName)
        report.hasSent = true
      }
      // The first vault of a machine is all that the folder has.
      if own == nil, present == nil { report.hasReceived = true }
      return report
    } catch let error as VaultError {
      throw Failure(error, at: place)
    } catch let error as UbiquitousStoreError {
      throw Failure(error)
    }
  }

  /// The vault of this machine as it is under the lock, and its slots if its key is already that of the folder.
  ///
  /// A vault is replaced by one under another key only if all that it has goes into that one.
  private func localVault(
    _ known: OpenVault, replacing own: VaultKey?
  ) throws(Failure) -> (contents: Vault, slots: VaultFile.Slots?) {
    guard let file = try local.read() else {
      guard own == nil else {
        throw Failure(.noInput, "the vault in \(local.path) is gone", hint: "`authenticator check` shows its versions")
      }
      return (known.vault, nil)
    }
    if file.keyID == known.key.id {
      return (try file.opened(with: known.key, at: local.vaultPath).vault, file.slots)
    }
    guard let own, file.keyID == own.id else {
      throw Failure(.retryLater, "another process has made a vault in the meantime", hint: "try again")
    }
    return (try file.opened(with: own, at: local.vaultPath).vault, nil)
  }
}
