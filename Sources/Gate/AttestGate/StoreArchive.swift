public import ByteCoding

/// A whole store: migrated to this version, copied while gates use it, replaced while none does.
///
/// For operators' commands. A call blocks its thread for as long as the size of the store takes.
public protocol StoreArchive: Sendable {
  /// What the store is and where: without user and password.
  var place: String { get }

  /// How far the tables have come. Changes nothing.
  ///
  /// - Throws: `.unreachable` if a newer version has been here.
  func schema() throws(StoreError) -> SchemaState

  /// Makes the tables, or brings them to this version; says what was done. Of several at once one does it.
  ///
  /// - Throws: `.unreachable` if a newer version has been here.
  func migrate() throws(StoreError) -> SchemaChange

  /// Hands all keys to `take`, in the order of their ids, as they were at one instant. Gates go on meanwhile.
  ///
  /// - Throws: `StoreError`, and what `take` throws.
  func copyOut(_ take: ([KeyEntry]) throws -> Void) throws

  /// Puts the keys that `feed` hands out into the place of everything that is stored: all of it, or, when anything
  /// throws, nothing.
  ///
  /// - Returns: where the store is kept that was replaced; `nil` if nowhere.
  /// - Throws: `StoreInUse`, `StoreError`, and what `feed` throws.
  func replace(with start: ArchiveHeader, _ feed: (_ take: ([KeyEntry]) throws -> Void) throws -> Void) throws
    -> String?
}

/// A process uses the store that is to be replaced.
public struct StoreInUse: Error, Sendable, Hashable {
  public init() {}
}

/// What a store begins with, beside its keys, that takes the place of another.
///
/// It holds fewer spent nonces than were spent. So no nonce that was issued before may be good: neither by its key
/// nor by its time.
public struct ArchiveHeader: Sendable, Hashable {
  /// Takes the place of all keys of nonces.
  public let ring: ChallengeKeyRing
  /// Nonces that were issued at or before this instant are refused, whatever key made them, also if the keys are in a
  /// file that was not replaced.
  public let instant: Timestamp

  public init(at instant: Timestamp) {
    ring = .random(madeAt: instant)
    self.instant = instant
  }
}

/// Which of the steps that lead to this version's tables a store has seen.
public struct SchemaState: Sendable, Hashable {
  /// 0 for a store that is not there.
  public let version: Int
  /// The version of this program.
  public let newest: Int

  public init(version: Int, newest: Int) {
    self.version = version
    self.newest = newest
  }

  public var isCurrent: Bool { version == newest }
}

/// What a migration did.
public struct SchemaChange: Sendable, Hashable {
  public let before: SchemaState
  /// What each step brought, in the order in which they were done; empty if there was nothing to do.
  public let steps: [String]

  public init(from before: SchemaState, _ steps: [String]) {
    self.before = before
    self.steps = steps
  }
}
