public import ByteCoding

/// Operations on a whole store: migrate it, copy it while gates are running, and replace it while no gate is running.
///
/// They are meant for operator commands. Calls block the calling thread, for longer the larger the store is.
public protocol StoreArchive: Sendable {
  /// The kind and location of the store, without user and password.
  var place: String { get }

  /// Returns the schema version without changing anything.
  ///
  /// - Throws: `.unreachable` if a newer version migrated the store.
  func schema() throws(StoreError) -> SchemaState

  /// Creates the tables or migrates them to this version, and returns what was done. If several callers race, one
  /// migrates.
  ///
  /// - Throws: `.unreachable` if a newer version migrated the store.
  func migrate() throws(StoreError) -> SchemaChange

  /// Passes all keys to `take` in key id order, from one consistent snapshot. Gates keep working meanwhile.
  ///
  /// - Throws: `StoreError`, and any error of `take`.
  func copyOut(_ take: ([KeyEntry]) throws -> Void) throws

  /// Replaces everything in the store with the keys that `feed` supplies. If anything throws, nothing is changed.
  ///
  /// - Returns: The location of the replaced store; `nil` if it was not kept.
  /// - Throws: `StoreInUse`, `StoreError`, and any error of `feed`.
  func replace(with start: ArchiveHeader, _ feed: (_ take: ([KeyEntry]) throws -> Void) throws -> Void) throws
    -> String?
}

/// The store cannot be replaced because another process uses it.
public struct StoreInUse: Error, Sendable, Hashable {
  public init() {}
}

/// The initial state of a replaced store, in addition to its keys.
///
/// The new store contains fewer spent nonces than were actually spent. Earlier nonces must therefore be invalid both
/// by their key and by their time.
public struct ArchiveHeader: Sendable, Hashable {
  /// Replaces all challenge keys.
  public let ring: ChallengeKeyRing
  /// Nonces that were issued at or before this instant are refused, whatever key made them. This covers challenge
  /// keys in a file that was not replaced.
  public let instant: Timestamp

  public init(at instant: Timestamp) {
    ring = .random(madeAt: instant)
    self.instant = instant
  }
}

/// The schema version of a store, compared with this program.
public struct SchemaState: Sendable, Hashable {
  /// The number of applied migrations; 0 for a store that does not exist.
  public let version: Int
  /// The schema version of this program.
  public let newest: Int

  public init(version: Int, newest: Int) {
    self.version = version
    self.newest = newest
  }

  public var isCurrent: Bool { version == newest }
}

/// The result of a migration.
public struct SchemaChange: Sendable, Hashable {
  public let before: SchemaState
  /// The descriptions of the applied migrations in order; empty if the schema was current.
  public let steps: [String]

  public init(from before: SchemaState, _ steps: [String]) {
    self.before = before
    self.steps = steps
  }
}
