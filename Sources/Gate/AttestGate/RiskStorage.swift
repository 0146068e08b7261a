public import AppAttest
public import ByteCoding

/// Apple's risk metric of a key: about how many keys of this app its device attested in the last 30 days.
public struct KeyRisk: Sendable, Hashable {
  /// The metric that Apple reported. It is a hint: several attestations of a device may count as one.
  public let metric: Int
  /// The time at which Apple made the receipt that says so.
  public let at: Timestamp

  public init(metric: Int, at: Timestamp) {
    self.metric = metric
    self.at = at
  }
}

/// Stores what the exchange of receipts with Apple needs: when the receipt of a key is due, and what came of it.
///
/// A key of App Attest whose receipt was never exchanged is due at once. Every call is one transaction, durable before it
/// returns.
public protocol RiskStorage: Sendable {
  /// Returns at most `limit` receipts of the apps `apps` (`TEAMID.bundle.identifier`) that are due at `now`: first those
  /// of keys that were never exchanged, the newest key first, then the others by the time at which they became due. Keys
  /// that are revoked are not due. An index finds them, however many keys there are.
  func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt]

  /// Stores the result of an exchange, if the stored receipt still is the one of `due` and the key still is registered;
  /// returns whether it was. A settlement with a metric that differs from the stored one is a change of the key: all
  /// gates are notified.
  func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool

  /// Tries to begin a round of exchanges and returns whether it may run. If several gates ask at once, one gets `true`,
  /// until it calls `endExchange()` or its connection closes.
  func beginExchange() async throws(StoreError) -> Bool

  /// Ends this gate's round, so that another gate can begin one.
  func endExchange() async throws(StoreError)
}

/// A receipt whose exchange is due.
public struct DueReceipt: Sendable, Hashable {
  /// The registered key.
  public let key: AttestedKey
  /// The newest receipt of the key (CMS).
  public let receipt: [UInt8]
  /// The number of exchanges of this receipt that failed in a row.
  public let failures: Int

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

  public init(receipt: [UInt8]? = nil, risk: KeyRisk? = nil, next: Timestamp?, failures: Int = 0) {
    self.receipt = receipt
    self.risk = risk
    self.next = next
    self.failures = failures
  }
}
