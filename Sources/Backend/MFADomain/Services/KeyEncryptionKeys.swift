public import ByteCoding
internal import Crypto
internal import Foundation

/// The operator's keys, under which the data keys are sealed. The first one seals; all of them open.
public struct KeyEncryptionKeys: Sendable, Equatable {
  private let keys: [(name: String, key: SymmetricKey)]

  public struct Malformed: Error, Sendable, Hashable {
    public let reason: String
  }

  /// - Parameter keys: names and 32 bytes each, the current one first.
  public init(_ keys: [(name: String, secret: [UInt8])]) throws(Malformed) {
    guard !keys.isEmpty else { throw Malformed(reason: "no key") }
    guard Set(keys.map(\.name)).count == keys.count else { throw Malformed(reason: "two keys have one name") }
    guard keys.allSatisfy({ $0.secret.count == 32 && !$0.name.isEmpty }) else {
      throw Malformed(reason: "a key has a name and 32 bytes")
    }
    self.keys = keys.map { ($0.name, SymmetricKey(data: $0.secret)) }
  }

  public static func == (one: Self, other: Self) -> Bool {
    one.keys.elementsEqual(other.keys) { $0.name == $1.name && $0.key == $1.key }
  }

  /// Keys that are lost with the process.
  public static func ephemeral(_ entropy: Entropy) -> KeyEncryptionKeys {
    KeyEncryptionKeys(known: [("ephemeral", SymmetricKey(data: entropy.bytes(32)))])
  }

  private init(known: [(name: String, key: SymmetricKey)]) { keys = known }

  /// The name of the key that seals.
  var current: String { keys[0].name }

  func wrap(_ secret: [UInt8], number: UInt32, purpose: DataKey.Purpose, entropy: Entropy) throws -> DataKey {
    let box = try AES.GCM.seal(
      secret, using: keys[0].key, nonce: AES.GCM.Nonce(data: entropy.bytes(12)),
      authenticating: Self.place(number, purpose))
    return DataKey(
      number: number, purpose: purpose, wrappedBy: keys[0].name,
      wrapped: Array(box.nonce) + Array(box.ciphertext) + Array(box.tag))
  }

  func unwrap(_ key: DataKey) throws -> [UInt8] {
    guard let wrapping = keys.first(where: { $0.name == key.wrappedBy }) else {
      throw Vault.Unopenable(
        reason: "data key \(key.number) is sealed under \(key.wrappedBy), which is not among the keys")
    }
    do {
      let box = try AES.GCM.SealedBox(combined: key.wrapped)
      return Array(try AES.GCM.open(box, using: wrapping.key, authenticating: Self.place(key.number, key.purpose)))
    } catch {
      throw Vault.Unopenable(reason: "data key \(key.number) does not open with \(key.wrappedBy)")
    }
  }

  /// Opens every one of `dataKeys`, as a server that uses them does at its start.
  ///
  /// - Throws: `Vault.Unopenable` for the first one that does not open.
  public func verify(_ dataKeys: [DataKey]) throws {
    for key in dataKeys { _ = try unwrap(key) }
  }

  private static func place(_ number: UInt32, _ purpose: DataKey.Purpose) -> [UInt8] {
    Array("\(number):\(purpose.rawValue)".utf8)
  }
}

extension Vault {
  /// Opens the data keys of `store`, and makes missing ones. Two servers that start at the same time get the same keys.
  /// From then on `store` authenticates the history with them.
  ///
  /// A new key of the history and its first entry are written in one transaction: a key without an entry proves that
  /// entries were removed.
  public static func open(
    in store: any Store, with keys: KeyEncryptionKeys, entropy: Entropy, at now: Timestamp = WallClock.system.now()
  ) async throws -> Vault {
    let (stored, began) = try await store.write { records in
      var stored = try records.dataKeys()
      let hadHistoryKey = stored.contains { $0.purpose == .history }
      for purpose in DataKey.Purpose.allCases where !stored.contains(where: { $0.purpose == purpose }) {
        stored.append(try records.makeDataKey(purpose, with: keys, entropy: entropy))
      }
      return (stored, hadHistoryKey ? nil : try records.beginHistory(with: keys, at: now))
    }
    var vault = try Vault(keys: try stored.map { ($0, try keys.unwrap($0)) }, entropy: entropy)
    vault.historyBegan = began
    store.authenticateHistory(with: vault.historyKeys)
    return vault
  }

  /// The keys that verify the history of `store`; `nil` if there is none. Writes nothing.
  public static func historyKeys(in store: any Store, with keys: KeyEncryptionKeys) async throws -> HistoryKeys? {
    HistoryKeys(try await store.read { try $0.historySecrets(with: keys) })
  }

  /// Seals every data key again under the current key-encryption key, and returns how many were sealed under another
  /// one.
  ///
  /// Every data key is opened, also those under the current key. Otherwise the operator could discard the right key and
  /// keep a wrong one of the same name.
  ///
  /// - Throws: `Unopenable` if a data key does not open; then none is sealed again.
  public static func rewrap(in store: any Store, with keys: KeyEncryptionKeys, entropy: Entropy) async throws -> Int {
    try await store.write { records in
      let opened = try records.dataKeys().map { ($0, try keys.unwrap($0)) }
      let old = opened.filter { key, _ in key.wrappedBy != keys.current }
      for (key, secret) in old {
        try records.save(keys.wrap(secret, number: key.number, purpose: key.purpose, entropy: entropy))
      }
      return old.count
    }
  }
}

extension KeyRecords {
  /// Makes a data key with the next number.
  func makeDataKey(
    _ purpose: DataKey.Purpose, with keys: KeyEncryptionKeys, entropy: Entropy
  ) throws -> DataKey {
    let number = (try dataKeys().map(\.number).max() ?? 0) + 1
    let key = try keys.wrap(entropy.bytes(32), number: number, purpose: purpose, entropy: entropy)
    try save(key)
    return key
  }

  fileprivate func historySecrets(with keys: KeyEncryptionKeys) throws -> [(number: UInt32, secret: [UInt8])] {
    try dataKeys().filter { $0.purpose == .history }.map { ($0.number, try keys.unwrap($0)) }
  }
}

extension KeyRecords where Self: AuditRecords {
  /// Appends the first entry under the newest key of the history, and returns its number.
  func beginHistory(with keys: KeyEncryptionKeys, at now: Timestamp) throws -> Int64 {
    guard let history = HistoryKeys(try historySecrets(with: keys)) else {
      throw Vault.Unopenable(reason: "a data key is missing")
    }
    return try beginHistoryKey(history, at: now)
  }
}
