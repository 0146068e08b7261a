public import ByteCoding

/// Counts how often one app instance was refused for the same reason at one account, in a window of time.
///
/// An app instance can be refused twenty times a second without end. So the history has the first refusal of a window
/// in full, and the others as one entry with their number once the window is over.
public struct RefusalTally: Sendable, Hashable {
  /// How long a window is, from its first refusal.
  public static let window = Duration.seconds(900)
  /// The maximum number of full entries in the history per window.
  public static let mostInFull = 10

  /// The common fields of the refusals. The caller controls none of them except the name of an existing account:
  /// otherwise each refusal could be made the first of its kind.
  public struct Kind: Sendable, Hashable {
    public let actor: String
    /// The key of the account's name; `nil` for all names without an account.
    public let account: String?
    public let event: String
    /// The reason in the detail of the entry.
    public let reason: String

    public init(actor: String, account: String?, event: String, reason: String) {
      self.actor = actor
      self.account = account
      self.event = event
      self.reason = reason
    }
  }

  public let kind: Kind
  public let since: Timestamp
  public var count: Int
  /// The request of the last one.
  public var lastRequestID: String

  public init(kind: Kind, since: Timestamp, count: Int, lastRequestID: String) {
    self.kind = kind
    self.since = since
    self.count = count
    self.lastRequestID = lastRequestID
  }

  /// How many of them the history does not have yet.
  public var unwritten: Int { max(0, count - Self.mostInFull) }

  public func isOver(at now: Timestamp) -> Bool { now.since(since) >= Self.window }
}
