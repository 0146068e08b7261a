/// Stores the identity signing keys for all nodes that share a store.
public protocol IdentityKeyStorage: Sendable {
  /// Returns the stored ring. If there is none, stores `candidate` first. If several callers race, all get the same
  /// ring.
  func identityKeys(orStoring candidate: IdentityKeyRing) async throws(StoreError) -> IdentityKeyRing

  /// Replaces the ring durably if it still equals `expected`, and returns whether it did. If several callers race,
  /// one gets `true`. Each node is notified.
  func replaceIdentityKeys(_ expected: IdentityKeyRing, with ring: IdentityKeyRing) async throws(StoreError) -> Bool
}
