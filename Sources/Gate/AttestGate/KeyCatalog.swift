public import AppAttest
public import ByteCoding

/// The operations on registered keys that operators need.
///
/// Lists are read in pages. A page costs the same at any position, and no call blocks the store for long, however many
/// keys there are. A key that cannot be read is named in `KeyPage.unreadable`: the others must stay in reach of
/// operators, and it must itself, to be removed.
public protocol KeyCatalog: Sendable {
  /// Returns at most `limit` keys that match `selection` and follow `cursor` (`nil`: from the start) in `order`.
  ///
  /// One call scans a bounded number of keys (`KeyPage.reach`), so a page may be short or empty although more pages
  /// follow. The cursor is the id of the last key, in every order.
  func keys(
    _ selection: KeySelection, in order: KeyOrder, after cursor: KeyID?, limit: Int
  ) async throws(StoreError) -> KeyPage

  /// Returns at most `limit` keys whose `KeyHash.text` begins with `prefix`, in the order of their hashes. No page
  /// follows.
  func keys(hashPrefix prefix: String, limit: Int) async throws(StoreError) -> KeyPage

  /// Removes those of `keys` that were not used since `instant` (`nil`: all of them) in one transaction, and returns
  /// how many were removed.
  ///
  /// A removed key counts as never registered: its device has to attest a new key. Each gate is notified.
  func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) async throws(StoreError) -> Int

  /// Returns a time that has certainly passed, independent of the gate's clock; `nil` if none is known. A database
  /// server returns its current time, a file the issue time of the latest nonce that was ever spent.
  func latestKnownTime() async throws(StoreError) -> Timestamp?

  /// Returns the complete entries of at most `limit` keys that follow `cursor` (`nil`: from the start), for copies.
  func entries(after cursor: KeyID?, limit: Int) async throws(StoreError) -> [KeyEntry]

  /// Returns the number of keys. It scans a whole index, so do not call it for every request.
  func count() async throws(StoreError) -> Int

  /// Merges `entries` in one transaction and returns how many keys were new. Merging the same entries again changes
  /// nothing.
  ///
  /// For an existing key the stricter values win: the greater counter and the earlier revocation. Of two risk metrics the
  /// newer one wins, with its receipt. A missing receipt is added.
  func merge(_ entries: [KeyEntry]) async throws(StoreError) -> Int

  /// Returns problems and warnings for the operator. `isThorough` reads the whole store.
  func findings(isThorough: Bool) async throws(StoreError) -> [StoreFinding]
}

extension KeyCatalog {
  /// Returns a page in the order of key ids.
  public func keys(
    _ selection: KeySelection, after cursor: KeyID?, limit: Int
  ) async throws(StoreError) -> KeyPage {
    try await keys(selection, in: .id, after: cursor, limit: limit)
  }
}

/// A filter for key lists. A condition that is `nil` matches every key.
public struct KeySelection: Sendable, Hashable {
  public var platform: Platform?
  /// The text of the app's name.
  public var app: String?
  public var environment: AttestEnvironment?
  public var isRevoked: Bool?
  /// Matches keys that were neither registered nor used at or after this instant.
  public var unusedSince: Timestamp?
  public var risk: RiskSelection?

  public init(
    platform: Platform? = nil, app: String? = nil, environment: AttestEnvironment? = nil, isRevoked: Bool? = nil,
    unusedSince: Timestamp? = nil, risk: RiskSelection? = nil
  ) {
    self.platform = platform
    self.app = app
    self.environment = environment
    self.isRevoked = isRevoked
    self.unusedSince = unusedSince
    self.risk = risk
  }

  public static let all = KeySelection()
}

/// One page of a key list.
public struct KeyPage: Sendable, Hashable {
  public let records: [KeyRecord]
  /// The keys of the page that cannot be read, in the same order.
  public let unreadable: [UnreadableKey]
  /// The cursor of the next page; `nil` on the last page.
  public let next: KeyID?

  /// The ids of all keys of the page: first those that can be read.
  public var keyIDs: [KeyID] { records.map(\.key.keyID) + unreadable.map(\.keyID) }

  public init(_ records: [KeyRecord], unreadable: [UnreadableKey] = [], next: KeyID?) {
    self.records = records
    self.unreadable = unreadable
    self.next = next
  }

  /// The maximum number of keys that one call scans.
  public static let reach = 5000
}

/// A key whose row has a value that no gate has written.
public struct UnreadableKey: Sendable, Hashable {
  public let keyID: KeyID
  /// The column, for the log.
  public let reason: String

  public init(_ keyID: KeyID, reason: String) {
    self.keyID = keyID
    self.reason = reason
  }
}

/// Everything that a store holds about one key.
public struct KeyEntry: Sendable, Hashable {
  public let record: KeyRecord
  /// A bitmap of the counters below the greatest one: bit n is set if the counter n below it can no longer be used.
  public let usedCounters: UInt64
  /// The newest receipt (CMS).
  public let receipt: [UInt8]

  public init(record: KeyRecord, usedCounters: UInt64, receipt: [UInt8]) {
    self.record = record
    self.usedCounters = usedCounters
    self.receipt = receipt
  }
}

/// A problem or warning about a store, for the operator.
public struct StoreFinding: Sendable, Hashable {
  public enum Weight: String, Sendable, Hashable {
    /// The store may fail to keep a guarantee.
    case problem
    case warning
  }

  public enum Area: String, Sendable, Hashable {
    /// The setup of the store or of its server.
    case settings
    /// The stored data.
    case data
  }

  public let weight: Weight
  public let area: Area
  /// The description of the problem.
  public let text: String
  /// The recommended action.
  public let advice: String

  public init(_ weight: Weight, in area: Area, _ text: String, advice: String) {
    self.weight = weight
    self.area = area
    self.text = text
    self.advice = advice
  }
}
