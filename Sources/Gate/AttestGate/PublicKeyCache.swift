internal import AppAttest
internal import Cryptography
internal import Locking

/// The keys that were seen lately, ready to verify with.
///
/// Saves the lookup and, above all, the making of the public key. What is kept never changes for a key: that it is
/// still there, is not revoked and has a greater counter is asked of the registry at each admission, so a stale entry
/// costs nothing but a verification. Two generations bound the memory: what was not used while `capacity` others were
/// is gone.
final class PublicKeyCache: Sendable {
  struct Key: Sendable {
    let attested: AttestedKey
    let publicKey: P256PublicKey

    /// A key of no device, to verify with in the place of one that is not registered: its private half is forgotten at
    /// once.
    static func decoy() throws(CryptographyError) -> AttestedKey? {
      let publicKey = try P256PrivateKey().publicKey
      guard let keyID = KeyID(bytes: SHA256.hash(publicKey.x963)),
        let appID = AppID(teamID: "0000000000", bundleID: "decoy")
      else { return nil }
      return AttestedKey(keyID: keyID, publicKey: publicKey.x963, appID: appID, environment: .development)
    }
  }

  private struct Generations {
    var young: [KeyID: Key] = [:]
    var old: [KeyID: Key] = [:]
  }

  private let registry: any KeyRegistry
  private let capacity: Int
  private let generations = LockedValue(Generations())

  /// Keeps at most twice `capacity` keys.
  init(registry: any KeyRegistry, capacity: Int) {
    self.registry = registry
    self.capacity = max(1, capacity)
  }

  /// The key `keyID` if it was used lately.
  func recall(_ keyID: KeyID) -> Key? {
    let (key, isOld) = generations.withLock { generations in
      let young = generations.young[keyID]
      return (young ?? generations.old[keyID], young == nil)
    }
    if let key, isOld { keep(key) }
    return key
  }

  /// Reads the key `keyID` from the registry and remembers it; `nil` if it is not registered.
  ///
  /// - Parameter decoy: the key whose public half is made ready where none is found, so that both cases cost the same.
  func read(
    _ keyID: KeyID, decoy: AttestedKey, timedBy stopwatch: Stopwatch = .none
  ) async throws(StoreError) -> (key: Key, isRegistered: Bool) {
    let record = try await stopwatch.time(.lookup) { () async throws(StoreError) in
      try await registry.record(of: keyID)
    }
    let attested = record?.key ?? decoy
    do throws(CryptographyError) {
      let key = Key(attested: attested, publicKey: try attested.makePublicKey())
      if record != nil { keep(key) }
      return (key, record != nil)
    } catch {
      throw .corrupt(reason: "a stored public key is not a point of P-256")
    }
  }

  /// Forgets a key that the registry no longer has.
  func forget(_ keyID: KeyID) {
    generations.withLock { generations in
      generations.young[keyID] = nil
      generations.old[keyID] = nil
    }
  }

  private func keep(_ key: Key) {
    generations.withLock { generations in
      if generations.young.count >= capacity {
        generations.old = generations.young
        generations.young = [:]
      }
      generations.young[key.attested.keyID] = key
    }
  }
}
