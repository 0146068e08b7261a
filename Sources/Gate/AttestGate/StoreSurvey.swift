/// What a store looks like to somebody who only looks: nothing is made, migrated or locked.
public enum StoreSurvey: Sendable, Hashable {
  /// There is nothing yet: the first gate that opens it makes it.
  case absent
  /// The tables are those of this version.
  case current
  /// The next gate that opens it makes so many migrations.
  case outdated(migrations: Int)
}
