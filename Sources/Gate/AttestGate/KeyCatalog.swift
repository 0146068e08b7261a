public import AppAttest
public import ByteCoding

/// What an operator does with the keys that are registered.
///
/// Lists are read in pages, in the order of the key ids: a page costs the same wherever it begins, and no call holds
/// the store up for long, however many keys there are.
public protocol KeyCatalog: Sendable {
  /// Keys that `selection` picks, behind `cursor` (`nil`: from the start), at most `limit`.
  ///
  /// A page may hold fewer, even none, and still have a next one: one call looks at a bounded number of keys.
  func keys(_ selection: KeySelection, after cursor: KeyID?, limit: Int) async throws(StoreError) -> KeyPage

  /// Keys whose `KeyHash.text` begins with `prefix`, at most `limit`.
  func keys(hashPrefix prefix: String, limit: Int) async throws(StoreError) -> [KeyRecord]

  /// Removes those of `keys` that were not used since `instant`, or all (`nil`), in one transaction; says how many.
  ///
  /// A removed key is as one that was never registered: its device has to attest a new one. Each gate hears of it.
  func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) async throws(StoreError) -> Int

  /// A time that has come, by a clock that is not the gate's: of a database server now, of a file the youngest nonce
  /// that was ever spent. `nil` if there is none.
  func latestKnownTime() async throws(StoreError) -> Timestamp?

  /// Everything about the keys behind `cursor` (`nil`: from the start), at most `limit`: what a copy is made of.
  func entries(after cursor: KeyID?, limit: Int) async throws(StoreError) -> [KeyEntry]

  /// How many keys there are. Reads an index from end to end: not for every request.
  func count() async throws(StoreError) -> Int

  /// Takes `entries` in, in one transaction, and says how many keys were new. Again is the same as once.
  ///
  /// A key that is there already keeps what is stricter: the greater counter, the earlier revocation.
  func merge(_ entries: [KeyEntry]) async throws(StoreError) -> Int

  /// What an operator should know about the store. `isThorough` reads all of it.
  func findings(isThorough: Bool) async throws(StoreError) -> [StoreFinding]
}

/// Which keys to list. Conditions that are `nil` pick all.
public struct KeySelection: Sendable, Hashable {
  public var appID: AppID?
  public var environment: AttestEnvironment?
  public var isRevoked: Bool?
  /// Neither registered nor used at or after this instant.
  public var unusedSince: Timestamp?

  public init(
    appID: AppID? = nil, environment: AttestEnvironment? = nil, isRevoked: Bool? = nil, unusedSince: Timestamp? = nil
  ) {
    self.appID = appID
    self.environment = environment
    self.isRevoked = isRevoked
    self.unusedSince = unusedSince
  }

  public static let all = KeySelection()
}

public struct KeyPage: Sendable, Hashable {
  public let records: [KeyRecord]
  /// Where the next page begins; `nil` at the end.
  public let next: KeyID?

  public init(_ records: [KeyRecord], next: KeyID?) {
    self.records = records
    self.next = next
  }

  /// How many keys one call looks at.
  public static let reach = 5000
}

/// All that is stored about a key.
public struct KeyEntry: Sendable, Hashable {
  public let record: KeyRecord
  /// Bit n stands for the counter n below the greatest one and is set if that cannot be used any more.
  public let usedCounters: UInt64
  /// CMS, as the device sent it.
  public let receipt: [UInt8]

  public init(record: KeyRecord, usedCounters: UInt64, receipt: [UInt8]) {
    self.record = record
    self.usedCounters = usedCounters
    self.receipt = receipt
  }
}

/// Something that an operator should know about a store.
public struct StoreFinding: Sendable, Hashable {
  public enum Weight: String, Sendable, Hashable {
    /// What was promised may not be kept.
    case problem
    case warning
  }

  public enum Area: String, Sendable, Hashable {
    /// How the store, or the server that it is on, is set up.
    case settings
    /// What is stored.
    case data
  }

  public let weight: Weight
  public let area: Area
  /// What was found.
  public let text: String
  /// What to do about it.
  public let advice: String

  public init(_ weight: Weight, in area: Area, _ text: String, advice: String) {
    self.weight = weight
    self.area = area
    self.text = text
    self.advice = advice
  }
}
