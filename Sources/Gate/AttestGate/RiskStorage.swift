public import AppAttest
public import ByteCoding

/// The risk metric of a key: on iOS about how many keys of this app its device attested in the last 30 days, on Android
/// the number by `AttestationKeyRisk`.
public struct KeyRisk: Sendable, Hashable {
  /// The metric that Apple reported, or that the store counted. It is a hint: several attestations of a device may count
  /// as one.
  public let metric: Int
  /// The time at which Apple made the receipt that says so, or of the newest key that is counted.
  public let at: Timestamp

  public init(metric: Int, at: Timestamp) {
    self.metric = metric
    self.at = at
  }

  /// The number of the week of `at`, counted from 1970. Gates hear of a metric that stays the same once in a week of its
  /// exchanges, so that the time that they know of it is not much older than a week.
  package var week: Int64 { at.milliseconds / Self.millisecondsOfWeek }
  package static let millisecondsOfWeek: Int64 = 7 * 86_400_000
}

/// The risk metric of a key as a store has it.
public struct StoredRisk: Sendable, Hashable {
  /// The newest metric that Apple reported, or that the store counted when it read the key.
  public let newest: KeyRisk
  /// Whether no exchange follows: the receipt has expired, or Apple does not accept it. The metric then only describes
  /// the past, and policies treat it as unknown.
  public let isOutdated: Bool

  public init(_ newest: KeyRisk, isOutdated: Bool = false) {
    self.newest = newest
    self.isOutdated = isOutdated
  }

  /// The metric that policies act on; `nil` if it is outdated.
  public var current: KeyRisk? { isOutdated ? nil : newest }
}

/// Stores what the exchange of receipts with Apple needs: when the receipt of a key is due, and what came of it.
///
/// A key of App Attest whose receipt was never exchanged is due at once. Every call is one transaction, durable before it
/// returns.
public protocol RiskStorage: Sendable {
  /// Returns at most `limit` receipts of the apps `apps` (`TEAMID.bundle.identifier`) that are due at `now`: first those
  /// of keys that were never exchanged, the newest key first, then the others by the time at which they became due. Keys
  /// that are revoked are not due. An index finds them, however many keys there are.
  ///
  /// A row that cannot be read is skipped, so that the receipts of other keys are exchanged; `findings` reports it. One
  /// call skips a bounded number of rows of an app (`DueReceipt.mostSkipped`).
  func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt]

  /// Stores the result of an exchange, if the stored receipt still is the one of `due` and the key still is registered;
  /// returns whether it was. A settlement that changes the metric that policies act on, or the week of its time, or that
  /// revokes the key, is a change of the key: all gates are notified.
  func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool

  /// Tries to begin a round of exchanges and returns whether it may run. If several gates ask at once, one gets `true`,
  /// until it calls `endExchange()` or its connection closes.
  func beginExchange() async throws(StoreError) -> Bool

  /// Returns whether this gate's round still runs. A round ends with its connection, and another gate may have begun one
  /// since.
  func holdsExchange() async throws(StoreError) -> Bool

  /// Ends this gate's round, so that another gate can begin one.
  func endExchange() async throws(StoreError)

  /// Counts the metrics of at most `limit` registered keys that follow `cursor` (`nil`: from the start), in key id
  /// order. Revoked keys are not counted, nor keys whose app or metric cannot be read.
  func riskTally(after cursor: KeyID?, limit: Int) async throws(StoreError) -> RiskTally
}

/// The number of keys with each metric, for a part of the keys.
public struct RiskTally: Sendable, Hashable {
  /// Keys that count together.
  public struct Group: Sendable, Hashable {
    /// The text of the app's name.
    public let app: String
    /// The current metric; `nil` for keys without one.
    public let metric: Int?

    public init(app: String, metric: Int?) {
      self.app = app
      self.metric = metric
    }
  }

  public private(set) var counts: [Group: Int]
  /// The cursor of the next part; `nil` after the last one.
  public private(set) var next: KeyID?

  public init(_ counts: [Group: Int] = [:], next: KeyID? = nil) {
    self.counts = counts
    self.next = next
  }

  /// Adds the next part.
  public mutating func add(_ part: RiskTally) {
    counts.merge(part.counts) { $0 + $1 }
    next = part.next
  }
}

/// A receipt whose exchange is due.
public struct DueReceipt: Sendable, Hashable {
  /// The registered key.
  public let key: AttestedKey
  /// The newest receipt of the key (CMS).
  public let receipt: [UInt8]
  /// The number of exchanges of this receipt that failed in a row.
  public let failures: Int

  /// The maximum number of rows of an app that one call skips because they cannot be read.
  public static let mostSkipped = 1000

  public init(key: AttestedKey, receipt: [UInt8], failures: Int) {
    self.key = key
    self.receipt = receipt
    self.failures = failures
  }
}

/// What an exchange changes.
public struct ReceiptSettlement: Sendable, Hashable {
  /// The receipt that replaces the stored one; `nil` keeps that.
  public var receipt: [UInt8]?
  /// The new metric; `nil` keeps the stored one.
  public var risk: KeyRisk?
  /// The time at which the stored receipt is due again; `nil` for never.
  public var next: Timestamp?
  /// The number of failures in a row to store; 0 after a success.
  public var failures: Int
  /// The time at which the key is revoked in the same transaction, unless it already is; `nil` does not revoke it.
  public var revokedAt: Timestamp?

  public init(
    receipt: [UInt8]? = nil, risk: KeyRisk? = nil, next: Timestamp?, failures: Int = 0, revokedAt: Timestamp? = nil
  ) {
    self.receipt = receipt
    self.risk = risk
    self.next = next
    self.failures = failures
    self.revokedAt = revokedAt
  }
}
