public import Foundation

/// One exchange of a vault with the other devices through a store.
public enum VaultExchange {
  /// What an exchange did.
  public struct Report: Sendable, Hashable {
    /// Whether this device learned something.
    public var hasReceived = false
    /// Whether the other devices can learn something.
    public var hasSent = false
    /// The conflicting versions that were merged and removed.
    public var merged: [String] = []
    /// The conflicting versions that could not be opened, and what only looks like one: place and reason. All were
    /// left.
    public var left: [String: VaultError] = [:]
    /// The entries that this device had and that were removed on another one, by name.
    public var removed: [String] = []
  }

  /// Joins the vault of this device with that of the store and its conflicting versions.
  ///
  /// The order keeps everything at any crash: the joined vault is saved on this device, then written to the store, and
  /// only then are conflicting versions removed. If another device writes to the store in between, its own copy still
  /// has what it wrote, and its next exchange brings it again.
  ///
  /// - Parameters:
  ///   - vault: The vault of this device, as it is saved.
  ///   - name: The value's name in the store.
  ///   - open: Opens a value of the store.
  ///   - seal: Seals the vault for the store.
  ///   - save: Saves the vault on this device, durably.
  ///   - mustSend: Whether to write to the store even if its vault is the same.
  /// - Throws: What `open` throws for the value of the store, which then is left as it is; what `save` and the store
  ///   throw.
  public static func run(
    _ vault: inout Vault, through store: any UbiquitousStore, name: String, open: (Data) throws(VaultError) -> Vault,
    seal: (Vault) -> Data, save: (Vault) throws -> Void, mustSend: Bool = false
  ) throws -> Report {
    var report = Report()
    var joined = vault
    let stored = try store.data(forKey: name).map { data throws(VaultError) in try open(data) }
    if let stored { joined.merge(stored) }
    var resolved: [ConflictingVersion] = []
    for version in try store.conflictingVersions(ofKey: name) {
      do throws(VaultError) {
        joined.merge(try open(version.value.get()))
        resolved.append(version)
      } catch {
        report.left[version.place] = error
      }
    }
    if joined != vault {
      try save(joined)
      report.removed = vault.entries.filter { joined[$0.id] == nil }.map(\.name)
      vault = joined
      report.hasReceived = true
    }
    if joined != stored || mustSend {
      try store.set(seal(joined), forKey: name)
      report.hasSent = true
    }
    for version in resolved {
      try store.resolve(version)
      report.merged.append(version.place)
    }
    return report
  }
}
