public import ByteCoding
public import Foundation

/// A message on its way to a person.
public struct OutgoingMessage: Sendable, Hashable {
  public enum Destination: Sendable, Hashable {
    case phone(PhoneNumber)
    case email(EmailAddress)
  }

  /// The content of a message. No text of a caller is part of it, so the backend cannot be made to send arbitrary
  /// text.
  public enum Content: Sendable, Hashable {
    /// A code to be typed in.
    case code(String)
    /// A recovery of the account has begun, and can bring a device in from `readyAt` on. `stopCode` stops it.
    case recoveryStarted(stopCode: String, readyAt: Timestamp)
    /// A device was brought in by a recovery, and all others are gone.
    case recoveryCompleted
  }

  public let destination: Destination
  public let content: Content
  /// How long it is of use, which is how long a code in it lives.
  public let lifetime: Duration
  /// The languages of the recipient, as far as they are known.
  public let languages: Languages

  public init(destination: Destination, content: Content, lifetime: Duration, languages: Languages = .unknown) {
    self.destination = destination
    self.content = content
    self.lifetime = lifetime
    self.languages = languages
  }

  public init(destination: Destination, code: String, lifetime: Duration, languages: Languages = .unknown) {
    self.init(destination: destination, content: .code(code), lifetime: lifetime, languages: languages)
  }

  /// The code in the message; `nil` if there is none.
  public var code: String? {
    switch content {
    case .code(let code), .recoveryStarted(let code, _): code
    case .recoveryCompleted: nil
    }
  }
}

/// Accepts messages for delivery. Accepting never waits and never fails, so that the time of a request does not
/// reveal whether a number exists or a provider answers.
public protocol Outbox: Sendable {
  func send(_ message: OutgoingMessage)
}

/// A message that asks an app instance, by the push service of its platform, to open its socket. Apple or Google, and
/// every reader of a locked screen, can read it, so it names neither the account nor what happened.
public struct PushNotification: Sendable, Hashable {
  public enum Content: Sendable, Hashable {
    /// A sign-in waits for approval.
    case signIn(push: UUID)
    /// The user has a new notice.
    case notice(sequence: Int64)
  }

  public let address: PushAddress
  /// The token of the address.
  public let token: String
  public let content: Content
  /// The end of its use. It is not delivered afterwards.
  public let expiresAt: Timestamp
  /// The languages of the device, as far as they are known.
  public var languages: Languages { Languages(tag: address.language) }

  public init(address: PushAddress, token: String, content: Content, expiresAt: Timestamp) {
    self.address = address
    self.token = token
    self.content = content
    self.expiresAt = expiresAt
  }
}

/// Accepts push notifications for delivery. Accepting never waits and never fails: the device may learn of a sign-in by
/// its socket as well, and no request waits for Apple or Google.
public protocol PushOutbox: Sendable {
  func send(_ notification: PushNotification)
}

/// Makes access tokens.
public protocol AccessTokenIssuer: Sendable {
  /// Issues a token for the current state of `session`, valid for `lifetime`.
  func issue(for session: LoginSession, of user: User, at now: Timestamp) async throws -> String
  /// How long a token is good.
  var lifetime: Duration { get }
}
