/// The schema state of a store, found without creating, migrating or locking anything.
public enum StoreStatistics: Sendable, Hashable {
  /// The store does not exist yet: the first gate that opens it creates it.
  case absent
  /// The tables have the schema of this version.
  case current
  /// The next gate that opens the store applies this number of migrations.
  case outdated(migrations: Int)
}
