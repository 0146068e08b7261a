/// Stores the challenge keys for all nodes that share a store.
public protocol ChallengeKeyStorage: Sendable {
  /// Returns the stored ring. If there is none, stores `candidate` first. If several callers race, all get the same
  /// ring.
  func challengeKeys(orStoring candidate: ChallengeKeyRing) async throws(StoreError) -> ChallengeKeyRing

  /// Replaces the stored ring with `ring`, durably. Each node is notified.
  ///
  /// A ring with a single key invalidates all earlier nonces. The implementation then also lowers the nonce watermark
  /// to the time at which that key was made. Otherwise a clock that once ran ahead would make the store refuse every
  /// nonce until real time has passed the watermark.
  func replaceChallengeKeys(with ring: ChallengeKeyRing) async throws(StoreError)

  /// Replaces the ring if it still equals `expected`, and returns whether it did. If several callers race, one gets
  /// `true`.
  func replaceChallengeKeys(
    _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing
  ) async throws(StoreError) -> Bool
}
