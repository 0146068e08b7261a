/// Where nodes that share a store find the keys of their nonces.
public protocol ChallengeKeyStorage: Sendable {
  /// The stored ring; `candidate` is stored first if there is none. Of several callers racing, all get the same ring.
  func challengeKeys(orStoring candidate: ChallengeKeyRing) async throws(StoreError) -> ChallengeKeyRing

  /// Puts `ring` in the place of whatever ring there is, durably. Each node hears of it.
  ///
  /// Under a ring of one key no nonce of before is good, so none need be remembered as forgotten that is younger than
  /// the ring: after a clock that ran ahead for minutes, every nonce would be refused until the world has caught up.
  func replaceChallengeKeys(with ring: ChallengeKeyRing) async throws(StoreError)

  /// As `replaceChallengeKeys(with:)`, but only if the ring is still `expected`; says whether it was. Of several
  /// callers racing, one gets `true`.
  func replaceChallengeKeys(
    _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing
  ) async throws(StoreError) -> Bool
}
