internal import AppAttest
internal import Cryptography
internal import Locking

/// The keys that were seen lately, ready to verify with.
///
/// Saves the lookup and, above all, the making of the public key. What is kept never changes for a key: that it is still
/// there, is not revoked and has a greater counter is asked of the registry at each admission, so a stale entry costs
/// nothing but a verification. Two generations bound the memory: what was not used while `capacity` others were is gone.
final class KnownKeys: Sendable {
  struct Key: Sendable {
    let attested: AttestedKey
    let publicKey: P256PublicKey

    /// A key that nobody has: its private half is forgotten at once.
    static func stranger() throws(CryptographyError) -> Key? {
      let publicKey = try P256PrivateKey().publicKey
      guard let keyID = KeyID(bytes: SHA256.hash(publicKey.x963)),
        let appID = AppID(teamID: "0000000000", bundleID: "stranger")
      else { return nil }
      let attested = AttestedKey(
        keyID: keyID, publicKey: publicKey.x963, appID: appID, environment: .development)
      return Key(attested: attested, publicKey: publicKey)
    }
  }

  private struct Generations {
    var young: [KeyID: Key] = [:]
    var old: [KeyID: Key] = [:]
  }

  private let registry: any KeyRegistry
  private let capacity: Int
  private let generations = Guarded(Generations())

  /// Keeps at most twice `capacity` keys.
  init(registry: any KeyRegistry, capacity: Int) {
    self.registry = registry
    self.capacity = max(1, capacity)
  }

  /// The registered key of this name; `nil` if there is none. Strangers are not remembered.
  func find(_ keyID: KeyID, timedBy stopwatch: Stopwatch = .none) async throws(StoreError) -> Key? {
    if let key = recall(keyID) { return key }
    let record = try await stopwatch.time(.lookup) { () async throws(StoreError) in
      try await registry.record(of: keyID)
    }
    guard let record else { return nil }
    do throws(CryptographyError) {
      let key = Key(attested: record.key, publicKey: try record.key.makePublicKey())
      keep(key)
      return key
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

  private func recall(_ keyID: KeyID) -> Key? {
    let (key, isOld) = generations.withLock { generations in
      let young = generations.young[keyID]
      return (young ?? generations.old[keyID], young == nil)
    }
    if let key, isOld { keep(key) }
    return key
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
