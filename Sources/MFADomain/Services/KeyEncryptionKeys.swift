internal import ByteCoding
internal import Crypto
internal import Foundation

/// The operator's keys that the data keys are sealed under. The first one seals; all of them open.
public struct KeyEncryptionKeys: Sendable {
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

  /// Keys that are forgotten with the process.
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

  private static func place(_ number: UInt32, _ purpose: DataKey.Purpose) -> [UInt8] {
    Array("\(number):\(purpose.rawValue)".utf8)
  }
}

extension Vault {
  /// Opens the data keys of `store`, and makes those that are missing. Of two servers that start at once, both end with
  /// the same keys.
  public static func open(in store: any Store, with keys: KeyEncryptionKeys, entropy: Entropy) async throws -> Vault {
    let stored = try await store.write { records in
      var stored = try records.dataKeys()
      for purpose in DataKey.Purpose.allCases where !stored.contains(where: { $0.purpose == purpose }) {
        let number = (stored.map(\.number).max() ?? 0) + 1
        let key = try keys.wrap(entropy.bytes(32), number: number, purpose: purpose, entropy: entropy)
        try records.save(key)
        stored.append(key)
      }
      return stored
    }
    return try Vault(keys: try stored.map { ($0, try keys.unwrap($0)) }, entropy: entropy)
  }

  /// Seals every data key anew under the current key-encryption key, and says how many were sealed under another.
  ///
  /// Every data key is opened, those under the current key too: another key of the same name would pass for it, and the
  /// one that opens them would be thrown away.
  ///
  /// - Throws: `Unopenable` if one data key does not open; then none was sealed anew.
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
