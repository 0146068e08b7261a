/// Where nodes that share a store find the keys that they sign identities with. Kept as the keys of nonces are.
public protocol IdentityKeyStorage: Sendable {
  /// The stored ring; `candidate` is stored first if there is none. Of several callers racing, all get the same ring.
  func identityKeys(orStoring candidate: IdentityKeyRing) async throws(StoreError) -> IdentityKeyRing

  /// Puts `ring` in the place of `expected`, durably, if that is still the ring; says whether it was. Of several
  /// callers racing, one gets `true`. Each node hears of it.
  func replaceIdentityKeys(_ expected: IdentityKeyRing, with ring: IdentityKeyRing) async throws(StoreError) -> Bool
}
