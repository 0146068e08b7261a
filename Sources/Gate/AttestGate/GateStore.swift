/// Everything that a gate remembers. Each store keeps the laws of `StoreConformance`.
public protocol GateStore: KeyRegistry, KeyCatalog, ChallengeKeyStorage, IdentityKeyStorage, ChangeFeed,
  ClusterMembership
{
  /// What the store is and where, for logs: without user and password.
  var place: String { get }
  /// How the last calls ended.
  var health: StoreHealth { get }

  /// Looks at the store without changing it, whether or not it is open.
  ///
  /// - Throws: what `open()` would meet, as far as looking tells: absent folders, missing permissions, a newer version.
  func survey() async throws(StoreError) -> StoreStatistics

  /// Opens and migrates the store and shows that it takes writes, so that a fault is known before the first client
  /// comes. Calling it is not needed, and an error is not final.
  func open() async throws(StoreError)

  /// Finishes the calls that wait and closes for good: later calls are refused as `.closed`.
  func close() async
}
