public import ByteCoding

/// Counts how often one app instance was refused for the same reason at one account, in a window of time.
///
/// An app instance can be refused twenty times a second without end. So the history has the first refusal of a window
/// in full, and the others as one entry with their number once the window is over.
public struct RefusalTally: Sendable, Hashable {
  /// How long a window is, from its first refusal.
  public static let window = Duration.seconds(900)
  /// How many of a window stand in the history in full.
  public static let mostInFull = 10

  /// What is the same in all of them. None of it is a text that the caller makes up, but for the name of an account
  /// that there is: or each refusal could be made the first of its kind.
  public struct Kind: Sendable, Hashable {
    public let actor: String
    /// The key of the account's name; `nil` for all names without an account.
    public let account: String?
    public let event: String
    /// What the entry's detail says of the reason.
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
