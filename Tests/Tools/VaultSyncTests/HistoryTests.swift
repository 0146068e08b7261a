import AuthenticatorVault
import Foundation
import Locking
import TestSupport
import Testing

/// The copy of a device, in memory.
final class MemoryStorage: DeviceStorage {
  private let copy = LockedValue<Data?>(nil)

  func read() -> Data? { copy.withLock { $0 } }
  func write(_ new: Data) { copy.withLock { $0 = new } }
}

/// Devices of one user, each with its copy, on a simulated cloud.
private struct Devices {
  let cloud: SimulatedCloud
  let storages: [MemoryStorage]
  let keys: [VaultKey]
  var vaults: [SynchronizedVault]

  init(_ count: Int, random: some RandomNumberGenerator & Sendable) throws {
    cloud = SimulatedCloud(devices: count, at: 1_000_000, random: random)
    storages = (0..<count).map { _ in MemoryStorage() }
    keys = (0..<count).map { _ in VaultKey() }
    vaults = []
    for device in 0..<count { vaults.append(try open(device)) }
  }

  func open(_ device: Int) throws -> SynchronizedVault {
    try SynchronizedVault(
      store: cloud.store(device: device), keychain: cloud.keychain(device: device), storage: storages[device],
      deviceKey: keys[device], at: cloud.now)
  }

  /// Moves the clock; each device then exchanges.
  mutating func pass(_ milliseconds: Int64) {
    cloud.advance(by: milliseconds)
    for device in vaults.indices { vaults[device].exchange(at: cloud.now) }
  }

  /// Connects all and waits until nothing changes.
  mutating func settle() {
    for device in vaults.indices { cloud.setOnline(true, device: device) }
    for _ in 0..<40 {
      pass(31_000)
      if cloud.isQuiet, Set(vaults.map(\.vault)).count == 1, vaults.allSatisfy({ $0.state == .shared }) { return }
    }
  }
}

private func entry(_ number: Int, at time: Int64) -> VaultEntry {
  VaultEntry(issuer: "Service \(number)", account: "", secret: Array("secret \(number)".utf8), at: time)
}

@Suite struct HistoryTests {
  @Test("D-035 D-047 D-048 D-064 T-38 in 1,000 random histories of three devices all agree, and no entry is lost")
  func histories() throws {
    for seed in 0..<1000 {
      var random = SeededGenerator(seed: UInt64(seed))
      var devices = try Devices(3, random: SeededGenerator(seed: UInt64(seed) + 5000))
      var added: Set<String> = []
      var removed: Set<String> = []
      for step in 0..<30 {
        let device = Int.random(in: 0..<3, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2:
          let new = entry(seed * 100 + step, at: devices.cloud.now)
          // Without the key of a vault that is there, nothing can be added.
          if (try? devices.vaults[device].change(at: devices.cloud.now, { $0.add(new, at: new.createdAt) })) != nil {
            added.insert(new.id)
          }
        case 3:
          guard let victim = devices.vaults[device].vault.entries.randomElement(using: &random) else { break }
          let now = devices.cloud.now
          if (try? devices.vaults[device].change(at: now, { try $0.remove(victim.id, at: now) })) != nil {
            removed.insert(victim.id)
          }
        case 4:
          guard let old = devices.vaults[device].vault.entries.randomElement(using: &random) else { break }
          let now = devices.cloud.now
          _ = try? devices.vaults[device].change(at: now) { vault in
            try vault.edit(old.id, at: now) { $0.account = "edit \(step)" }
          }
        case 5...6: devices.cloud.setOnline(Bool.random(using: &random), device: device)
        case 7: devices.vaults[device] = try devices.open(device)
        default: devices.pass(Int64.random(in: 100...40_000, using: &random))
        }
      }
      devices.settle()
      let vaults = devices.vaults.map(\.vault)
      #expect(vaults.allSatisfy { $0 == vaults[0] }, "seed \(seed)")
      #expect(devices.vaults.allSatisfy { $0.state == .shared } || added.isEmpty, "seed \(seed)")
      let present = Set(vaults[0].entries.map(\.id))
      #expect(added.subtracting(removed).isSubset(of: present), "seed \(seed)")
      #expect(present.isSubset(of: added), "seed \(seed)")
    }
  }

  @Test(
    "D-024 D-031 T-38 a key is made once, with the first entry, and only after other devices had time to send theirs")
  func firstKey() throws {
    var devices = try Devices(2, random: SeededGenerator(seed: 4))
    #expect(devices.vaults[0].state == .waiting(until: 1_060_000))
    let first = entry(1, at: devices.cloud.now)
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(first, at: 1) }
    #expect(throws: VaultKeychainError.itemNotFound) { try devices.cloud.keychain(device: 0).key() }
    devices.pass(60_000)
    #expect(devices.vaults[0].state == .shared)
    let key = try devices.cloud.keychain(device: 0).key()
    devices.pass(30_000)
    #expect(try devices.cloud.keychain(device: 1).key() == key)
    #expect(devices.vaults[1].vault.entries == [first])
    #expect(throws: VaultKeychainError.duplicateItem) { try devices.cloud.keychain(device: 1).add(VaultKey()) }
  }

  @Test("D-032 D-063 without its key a vault is read-only, nothing is overwritten, and no key is made")
  func keyMissing() throws {
    var devices = try Devices(2, random: SeededGenerator(seed: 9))
    devices.cloud.setKeychainFault(.itemNotFound, device: 1)
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(1, at: 1), at: 1) }
    devices.pass(60_000)
    let sealed = try devices.cloud.store(device: 0).data(forKey: "vault")
    devices.pass(600_000)
    #expect(devices.vaults[1].state == .keyMissing)
    #expect(throws: VaultError.keyMissing) {
      try devices.vaults[1].change(at: devices.cloud.now) { $0.add(entry(2, at: 2), at: 2) }
    }
    #expect(devices.vaults[1].vault.entries.isEmpty)
    #expect(try devices.cloud.store(device: 1).data(forKey: "vault") == sealed)
    devices.cloud.setKeychainFault(nil, device: 1)
    devices.pass(1)
    #expect(devices.vaults[1].state == .shared && devices.vaults[1].vault.entries.count == 1)
  }

  @Test("D-033 D-034 each result of the keychain has its state, and none removes or replaces the key")
  func keychainFaults() throws {
    #expect(VaultKeychainError(status: 0) == nil)
    #expect(VaultKeychainError(status: -25300) == .itemNotFound)
    #expect(VaultKeychainError(status: -25299) == .duplicateItem)
    #expect(VaultKeychainError(status: -25293) == .authenticationFailed)
    #expect(VaultKeychainError(status: -50) == .other(-50))
    var devices = try Devices(1, random: SeededGenerator(seed: 9))
    for fault in [VaultKeychainError.authenticationFailed, .other(-34018)] {
      devices.cloud.setKeychainFault(fault, device: 0)
      try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(1, at: 1), at: 1) }
      devices.pass(100_000)
      #expect(devices.vaults[0].state == .keychainFailed(fault))
    }
    devices.cloud.setKeychainFault(nil, device: 0)
    devices.pass(1)
    #expect(devices.vaults[0].state == .shared)
    // Turned off later: this device still has the key.
    devices.cloud.setKeychainFault(.itemNotFound, device: 0)
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(2, at: 2), at: 2) }
    #expect(devices.vaults[0].state == .shared)
  }

  @Test("D-030 T-54 the item of the shared key is synchronizable, and that of the device's own stays on it")
  func item() {
    let item = KeychainItem.vaultKey
    #expect(item.account == "vaultKey" && item.service == "com.second.totp" && item.isSynchronizable)
    #expect(item.accessibility == .afterFirstUnlock)
    let own = KeychainItem.deviceKey
    #expect(!own.isSynchronizable && own.accessibility == .afterFirstUnlockThisDeviceOnly)
    #expect(own.account != item.account)
  }

  @Test("D-026 D-027 the store has only the sealed vault, under the name vault")
  func ciphertext() throws {
    var devices = try Devices(1, random: SeededGenerator(seed: 2))
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(1, at: 1), at: 1) }
    devices.pass(60_000)
    let stored = try #require(try devices.cloud.store(device: 0).data(forKey: "vault"))
    let key = try devices.cloud.keychain(device: 0).key()
    #expect(try Vault(sealed: stored, with: key) == devices.vaults[0].vault)
    for data in [stored, try #require(devices.storages[0].read())] {
      for text in ["Service", "ONSWG", "secret"] { #expect(data.range(of: Data(text.utf8)) == nil) }
    }
  }

  @Test("D-045 a device hears of a change that another one made, and its exchange then has the entry")
  func notification() async throws {
    var devices = try Devices(2, random: SeededGenerator(seed: 3))
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(1, at: 1), at: 1) }
    devices.settle()
    #expect(devices.vaults[1].state == .shared && devices.vaults[1].vault.entries.count == 1)
    var changes = devices.cloud.store(device: 1).externalChanges().makeAsyncIterator()
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(2, at: 2), at: 2) }
    devices.cloud.advance(by: 60_000)
    #expect(await changes.next() != nil)
    #expect(devices.vaults[1].vault.entries.count == 1)
    devices.vaults[1].exchange(at: devices.cloud.now)
    #expect(devices.vaults[1].vault == devices.vaults[0].vault && devices.vaults[1].vault.entries.count == 2)
  }

  @Test func `a store that is full keeps its vault, and the device keeps its change`() throws {
    var devices = try Devices(1, random: SeededGenerator(seed: 2))
    try devices.cloud.store(device: 0).set(Data(count: 1_048_000), forKey: "other")
    try devices.vaults[0].change(at: devices.cloud.now) { vault in
      for number in 0..<10 { vault.add(entry(number, at: 1), at: 1) }
    }
    devices.pass(60_000)
    guard case .storeFailed(.size) = devices.vaults[0].state else {
      Issue.record("\(devices.vaults[0].state)")
      return
    }
    #expect(try devices.open(0).vault.entries.count == 10)
  }

  @Test func `what a device received stays in its vault if the store then refuses the joined one`() throws {
    struct ReadOnlyStore: UbiquitousStore {
      let store: any UbiquitousStore

      func data(forKey name: String) throws(UbiquitousStoreError) -> Data? { try store.data(forKey: name) }
      func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) { throw .unavailable("read-only") }
      func removeValue(forKey name: String) throws(UbiquitousStoreError) { throw .unavailable("read-only") }
      func synchronize() -> Bool { store.synchronize() }
      func externalChanges() -> AsyncStream<Void> { store.externalChanges() }
      func conflictingVersions(ofKey name: String) throws(UbiquitousStoreError) -> [ConflictingVersion] {
        try store.conflictingVersions(ofKey: name)
      }
      func resolve(_ version: ConflictingVersion) throws(UbiquitousStoreError) { try store.resolve(version) }
    }
    var devices = try Devices(2, random: SeededGenerator(seed: 6))
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(1, at: 1), at: 1) }
    devices.settle()
    var vault = try SynchronizedVault(
      store: ReadOnlyStore(store: devices.cloud.store(device: 1)), keychain: devices.cloud.keychain(device: 1),
      storage: devices.storages[1], deviceKey: devices.keys[1], at: devices.cloud.now)
    try vault.change(at: devices.cloud.now) { $0.add(entry(2, at: 2), at: 2) }
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(3, at: 3), at: 3) }
    devices.cloud.advance(by: 60_000)
    vault.exchange(at: devices.cloud.now)
    guard case .storeFailed = vault.state else {
      Issue.record("\(vault.state)")
      return
    }
    #expect(vault.vault.entries.count == 3)
    #expect(try devices.open(1).vault == vault.vault)
  }

  @Test func `a vault of a later version in the store is left as it is`() throws {
    var devices = try Devices(1, random: SeededGenerator(seed: 2))
    try devices.vaults[0].change(at: devices.cloud.now) { $0.add(entry(1, at: 1), at: 1) }
    devices.pass(60_000)
    let later = CombinedBox.seal(
      Data(#"{"tokens":[],"version":2}"#.utf8), with: try devices.cloud.keychain(device: 0).key())
    try devices.cloud.store(device: 0).set(later, forKey: "vault")
    devices.pass(1)
    #expect(devices.vaults[0].state == .unreadable(.unknownVersion(2)))
    #expect(try devices.cloud.store(device: 0).data(forKey: "vault") == later)
  }
}
