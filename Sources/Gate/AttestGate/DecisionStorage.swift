public import AppAttest
public import ByteCoding

/// The history of decisions about requests of registered keys, for operators.
///
/// It is not part of any guarantee: decisions may be lost, and no admission waits for a call of this protocol or shares
/// a transaction with one.
public protocol DecisionStorage: Sendable {
  /// Stores those of `decisions` whose keys are registered, in one transaction. Of each key and kind, only the newest
  /// `limit` are kept. Repetitions of an unverified refusal, with the same code and step, become one.
  ///
  /// - Parameters:
  ///   - decisions: Those of each key in their order.
  ///   - limit: At least 1.
  func store(_ decisions: [KeyDecision], atMost limit: Int) async throws(StoreError)

  /// Returns at most `limit` decisions about `keyID`, the last stored first, before `position` (`nil`: from the newest).
  ///
  /// The removal of a key removes them.
  func decisions(of keyID: KeyID, before position: Int64?, limit: Int) async throws(StoreError) -> DecisionPage

  /// Deletes the decisions that `retention` no longer keeps, in portions. Writes nothing if there are none.
  func forgetDecisions(_ retention: DecisionRetention, at now: Timestamp) async throws(StoreError)
}

/// How long decisions are kept.
public struct DecisionRetention: Sendable, Hashable {
  /// The maximum age.
  public let longest: Duration
  /// The maximum number in the store. The oldest ones leave.
  public let most: Int

  public init(longest: Duration, most: Int) { (self.longest, self.most) = (longest, most) }

  /// Keeps no decision.
  public static let nothing = DecisionRetention(longest: .zero, most: 0)
}

/// A decision about a request that named a key.
public struct KeyDecision: Sendable, Hashable {
  /// What is known about the sender of the request. Each kind is bounded by itself, so that what others send leaves the
  /// decisions about the device alone.
  public enum Kind: Int64, Sendable, Hashable, CaseIterable {
    /// The device was admitted: its nonce is spent.
    case admitted = 0
    /// The signature of the key is valid, and another rule refused the request.
    case refused = 1
    /// Nothing shows that the request came from the device. Any client that knows the key's id can send it.
    case unverified = 2
  }

  /// The text of the `KeyHash`.
  public let keyHash: String
  public let kind: Kind
  /// The time of the decision; of the last one of several.
  public let at: Timestamp
  /// The status of the answer; `nil` for an admission, also one by monitor mode.
  public let status: Int?
  /// The code of the refusal; `nil` for an admission.
  public let code: String?
  /// The violated rule; `nil` for an admission.
  public let step: String?
  /// Details of the violated rule, of the last one of several.
  public let detail: String?
  /// The client's address without its port.
  public let address: String
  public let requestID: String
  /// The number of refusals; more than 1 only for unverified ones.
  public let count: Int64
  /// The time of the first one.
  public let since: Timestamp

  /// - Parameter since: `nil` for `at`.
  public init(
    keyHash: String, kind: Kind, at: Timestamp, status: Int? = nil, code: String? = nil, step: String? = nil,
    detail: String? = nil, address: String, requestID: String, count: Int64 = 1, since: Timestamp? = nil
  ) {
    (self.keyHash, self.kind, self.at, self.status) = (keyHash, kind, at, status)
    (self.code, self.step, self.address, self.requestID) = (code, step, address, requestID)
    // PostgreSQL stores no text with U+0000.
    self.detail = detail.map { $0.utf8.contains(0) ? $0.replacing("\0", with: "\u{FFFD}") : $0 }
    (self.count, self.since) = (count, since ?? at)
  }
}

/// A page of decisions, the last stored first.
public struct DecisionPage: Sendable, Hashable {
  public let decisions: [KeyDecision]
  /// The position of the next page; `nil` on the last page.
  public let next: Int64?

  public init(_ decisions: [KeyDecision], next: Int64?) { (self.decisions, self.next) = (decisions, next) }
}
