public import ByteCoding

/// A message on its way to a person.
public struct OutgoingMessage: Sendable, Hashable {
  public enum Destination: Sendable, Hashable {
    case phone(PhoneNumber)
    case email(EmailAddress)
  }

  public let destination: Destination
  public let code: String
  /// How long the code lives.
  public let lifetime: Duration

  public init(destination: Destination, code: String, lifetime: Duration) {
    self.destination = destination
    self.code = code
    self.lifetime = lifetime
  }
}

/// Takes messages for delivery. Taking one never waits and never fails: whether a number exists, or a provider answers,
/// must not show in how long a request takes.
public protocol Outbox: Sendable {
  func send(_ message: OutgoingMessage)
}

/// Makes access tokens.
public protocol AccessTokenIssuer: Sendable {
  /// A token for `session` as it stands, good for `lifetime`.
  func issue(for session: Session, of user: User, at now: Timestamp) async throws -> String
  /// How long a token is good.
  var lifetime: Duration { get }
}
