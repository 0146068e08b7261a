/// The persistent state of a gate. Every store passes the `StoreConformance` suite.
public protocol GateStore: KeyRegistry, KeyCatalog, ChallengeKeyStorage, IdentityKeyStorage, ChangeFeed,
  ClusterMembership, RiskStorage, AttestationKeyStorage, DecisionStorage
{
  /// The kind and location of the store for logs, without user and password.
  var place: String { get }
  /// Whether the most recent calls succeeded.
  var health: StoreHealth { get }

  /// Inspects the store without changing it, whether it is open or not.
  ///
  /// - Throws: The errors that `open()` would report, as far as they can be seen: missing folders or permissions, or
  ///   a schema of a newer version.
  func statistics() async throws(StoreError) -> StoreStatistics

  /// Opens and migrates the store and verifies that it accepts writes, so that a fault is known before the first
  /// client connects. The call is optional, and an error is not final.
  func open() async throws(StoreError)

  /// Completes the waiting calls and closes the store permanently. Later calls throw `.closed`.
  func close() async
}
