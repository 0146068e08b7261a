/// The state of a store, read without creating, migrating or locking anything.
public enum StoreStatistics: Sendable, Hashable {
  /// There is nothing yet: the first gate that opens it makes it.
  case absent
  /// The tables are those of this version.
  case current
  /// The next gate that opens it makes so many migrations.
  case outdated(migrations: Int)
}
