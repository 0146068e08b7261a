public import Foundation

/// The vault of a device that shares it through a store and its key through a keychain, as apps on Apple's platforms do.
///
/// The device keeps its own copy under a key of its own, so that neither a late key, nor a key that was replaced, nor
/// an unreachable store takes an entry away. Not for use by several tasks at a time: an app wraps it in an actor.
public struct SynchronizedVault: Sendable {
  /// How far the vault is shared.
  public enum State: Sendable, Hashable {
    /// This device and the store are the same, as far as the store has arrived here.
    case shared
    /// The store has no vault yet. Until this time, in milliseconds since 1970, a key and a vault may still arrive from
    /// another device, and this one writes nothing to the store; afterwards its first entry makes them.
    case waiting(until: Int64)
    /// The store has a vault, and its key has not arrived. Entries cannot be changed; nothing is overwritten.
    ///
    /// The key arrives with iCloud Keychain, usually within 30 seconds. The user checks that iCloud Keychain is on.
    case keyMissing
    /// The vault of the store was sealed with a key that is not on this device. The device that has both will seal it
    /// again. Until then changes stay on this device.
    case otherKey
    /// The store refused the vault or cannot be reached. Changes stay on this device.
    case storeFailed(UbiquitousStoreError)
    /// The keychain refused to answer. Changes stay on this device.
    case keychainFailed(VaultKeychainError)
    /// The vault of the store cannot be read: a later version wrote it, or it was changed. It is left as it is.
    case unreadable(VaultError)
  }

  /// What the device keeps.
  struct Copy: Codable, Equatable {
    var vault = Vault()
    /// Each key that the vault was ever shared under on this device, the latest first.
    var keys: [Data] = []
    /// Whether this device has seen the vault of the store, or written it.
    var hasMet = false
  }

  /// The name of the vault in the store.
  public static let name = "vault"
  /// How long a new device waits for a key and a vault of other devices: 60 seconds, twice what a key may take.
  public static let grace: Int64 = 60_000

  private let store: any UbiquitousStore
  private let keychain: any VaultKeychain
  private let storage: any DeviceStorage
  private let deviceKey: VaultKey
  private let startedAt: Int64
  private var copy: Copy
  /// How far the vault is shared, as of the last exchange.
  public private(set) var state: State

  /// Opens the copy of this device, or begins with an empty one.
  ///
  /// - Parameters:
  ///   - deviceKey: The key of the device's own copy.
  ///   - time: Now, in milliseconds since 1970.
  /// - Throws: What `storage` throws; `VaultError` if the copy cannot be opened.
  public init(
    store: any UbiquitousStore, keychain: any VaultKeychain, storage: any DeviceStorage, deviceKey: VaultKey,
    at time: Int64
  ) throws {
    self.store = store
    self.keychain = keychain
    self.storage = storage
    self.deviceKey = deviceKey
    startedAt = time
    copy = try storage.read().map { try Self.open($0, with: deviceKey) } ?? Copy()
    state = .waiting(until: time + Self.grace)
    exchange(at: time)
  }

  /// The vault as this device has it.
  public var vault: Vault { copy.vault }

  /// Changes the vault and saves it on this device. The other devices follow with an exchange.
  ///
  /// - Throws: `VaultError.keyMissing` while the store has a vault that cannot be opened for want of its key; what
  ///   `body` and the storage throw. Nothing then has changed.
  @discardableResult public mutating func change<Value>(at time: Int64, _ body: (inout Vault) throws -> Value) throws
    -> Value
  {
    if state == .keyMissing { throw VaultError.keyMissing }
    var changed = copy
    let value = try body(&changed.vault)
    changed.vault.purge(at: time)
    try save(changed)
    exchange(at: time)
    return value
  }

  /// Exchanges the vault with the store: call it at start, after the store reports changes, when the key may have
  /// arrived, and when the network is back.
  public mutating func exchange(at time: Int64) {
    do {
      state = try exchanged(at: time)
    } catch let error as UbiquitousStoreError {
      state = .storeFailed(error)
    } catch let error as VaultKeychainError {
      state = .keychainFailed(error)
    } catch VaultError.otherKey {
      state = .otherKey
    } catch let error as VaultError {
      state = .unreadable(error)
    } catch {
      state = .storeFailed(.unavailable("\(error)"))
    }
  }

  private mutating func exchanged(at time: Int64) throws -> State {
    _ = store.synchronize()
    let stored = try store.data(forKey: Self.name)
    guard let key = try sharedKey(hasVault: stored != nil, at: time) else {
      return stored == nil ? .waiting(until: startedAt + Self.grace) : .keyMissing
    }
    // A vault without the entries of the other devices must not become the latest one.
    if stored == nil, copy.vault == Vault() || (!copy.hasMet && time < startedAt + Self.grace) {
      return .waiting(until: startedAt + Self.grace)
    }
    var changed = copy
    if changed.keys.first != Data(key.bytes) {
      changed.keys.removeAll { $0 == Data(key.bytes) }
      changed.keys.insert(Data(key.bytes), at: 0)
      try save(changed)
    }
    var keys = copy.keys.compactMap { VaultKey(bytes: $0) }
    // A vault under an older key is sealed again with the present one.
    var isOldKey = false
    var vault = copy.vault
    _ = try VaultExchange.run(
      &vault, through: store, name: Self.name,
      open: { data throws(VaultError) in
        let opened = try Self.open(data, with: &keys)
        isOldKey = opened.key != key
        return opened.vault
      }, seal: { $0.sealed(with: key) },
      save: { vault in
        changed.vault = vault
        // The store may refuse the vault that this device has saved.
        try save(changed)
      })
    changed.vault = vault
    changed.hasMet = true
    try save(changed)
    if isOldKey { try store.set(vault.sealed(with: key), forKey: Self.name) }
    return .shared
  }

  /// The key that all devices share. Makes one only if neither a key nor a vault has arrived within the grace period,
  /// and there is something to share.
  private func sharedKey(hasVault: Bool, at time: Int64) throws(VaultKeychainError) -> VaultKey? {
    do {
      return try keychain.key()
    } catch .itemNotFound {
      // The user may have turned the keychain off since. This device still has the key.
      if let known = copy.keys.first { return VaultKey(bytes: known) }
    }
    guard !hasVault, time >= startedAt + Self.grace, copy.vault != Vault() else { return nil }
    do {
      try keychain.add(VaultKey())
    } catch .duplicateItem {
      // One arrived in the meantime.
    }
    return try keychain.key()
  }

  /// Opens with the first of `keys` that fits.
  private static func open(_ data: Data, with keys: inout [VaultKey]) throws(VaultError) -> (
    vault: Vault, key: VaultKey
  ) {
    for key in keys {
      do throws(VaultError) {
        return (try Vault(sealed: data, with: key), key)
      } catch .notAuthentic {
        continue
      }
    }
    throw .otherKey
  }

  // MARK: The copy of this device

  private mutating func save(_ changed: Copy) throws {
    guard changed != copy else { return }
    try storage.write(Self.seal(changed, with: deviceKey))
    copy = changed
  }

  private static func seal(_ copy: Copy, with key: VaultKey) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return CombinedBox.seal(try encoder.encode(copy), with: key)
  }

  private static func open(_ data: Data, with key: VaultKey) throws -> Copy {
    try JSONDecoder().decode(Copy.self, from: CombinedBox.open(data, with: key))
  }
}

/// Where a device keeps its own copy.
public protocol DeviceStorage: Sendable {
  /// The copy; `nil` if there is none yet.
  func read() throws -> Data?
  /// Replaces the copy, durably: after a crash there is either the old one or the new one.
  func write(_ copy: Data) throws
}
