internal import AppAttest
internal import ByteCoding
internal import Cryptography
internal import Locking

/// A cache of recently used public keys.
///
/// It saves the lookup and, above all, the construction of the OpenSSL key. The registry checks at each admission that
/// the key still exists, is not revoked and has a greater counter. A stale entry therefore costs only one verification.
/// The risk is the only cached value that changes: `forget` evicts a key whose metric has changed. Two generations bound
/// the memory: a key that was not used while `capacity`
/// others were is evicted.
final class PublicKeyCache: Sendable {
  struct Key: Sendable {
    let attested: DeviceKey
    let publicKey: P256PublicKey
    let hash: KeyHash
    let risk: StoredRisk?
    /// `nil` for the decoy.
    let registeredAt: Timestamp?

    fileprivate init(_ attested: DeviceKey, of record: KeyRecord?) throws(CryptographyError) {
      self.attested = attested
      risk = record?.risk
      registeredAt = record?.registeredAt
      publicKey = try attested.makePublicKey()
      hash = KeyHash(of: attested.keyID)
    }

    /// Makes a key of App Attest that belongs to no device. It is verified against in place of a key that is not
    /// registered. Its private key is discarded immediately.
    static func decoy() throws(CryptographyError) -> AttestedKey? {
      let publicKey = try P256PrivateKey().publicKey
      guard let appID = AppID(teamID: "0000000000", bundleID: "decoy")
      else { return nil }
      return AttestedKey(
        keyID: KeyID(ofPublicKey: publicKey.x963), publicKey: publicKey.x963, appID: appID, environment: .development)
    }
  }

  private struct Generations {
    var young: [KeyID: Key] = [:]
    var old: [KeyID: Key] = [:]
    /// The number of evictions because of a change. A key that was read before one is not kept: it may be the key.
    var changes = 0
  }

  private let registry: any KeyRegistry
  private let capacity: Int
  private let generations = LockedValue(Generations())

  /// Creates a cache of at most twice `capacity` keys.
  init(registry: any KeyRegistry, capacity: Int) {
    self.registry = registry
    self.capacity = max(1, capacity)
  }

  /// Returns the key `keyID` if it was used recently.
  func recall(_ keyID: KeyID) -> Key? {
    generations.withLock { generations in
      if let key = generations.young[keyID] { return key }
      guard let key = generations.old[keyID] else { return nil }
      keep(key, in: &generations)
      return key
    }
  }

  /// Reads the key `keyID` from the registry and caches it. If it is not registered, returns `decoy`.
  ///
  /// - Parameter decoy: The key whose public key is constructed if none is found, so that both cases take the same
  ///   time.
  func read(
    _ keyID: KeyID, decoy: DeviceKey, timedBy stopwatch: Stopwatch = .none
  ) async throws(StoreError) -> (key: Key, isRegistered: Bool) {
    let changes = generations.withLock(\.changes)
    let record = try await stopwatch.time(.lookup) { () async throws(StoreError) in
      try await registry.record(of: keyID)
    }
    let attested = record?.key ?? decoy
    do throws(CryptographyError) {
      let key = try Key(attested, of: record)
      if record != nil {
        generations.withLock { if $0.changes == changes { keep(key, in: &$0) } }
      }
      return (key, record != nil)
    } catch {
      throw .corrupt(reason: "a stored public key is not a point on P-256")
    }
  }

  /// Evicts a key that the registry no longer has, or that has changed there.
  func forget(_ keyID: KeyID) {
    generations.withLock { generations in
      generations.changes &+= 1
      generations.young[keyID] = nil
      generations.old[keyID] = nil
    }
  }

  /// Evicts every key.
  func forgetAll() {
    generations.withLock { generations in
      generations.changes &+= 1
      (generations.young, generations.old) = ([:], [:])
    }
  }

  private func keep(_ key: Key, in generations: inout Generations) {
    if generations.young.count >= capacity {
      generations.old = generations.young
      generations.young = [:]
    }
    generations.young[key.attested.keyID] = key
  }
}
