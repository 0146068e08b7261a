public import ByteCoding
public import Foundation

/// A code that was sent, or that must look as if it had been sent.
public struct OneTimeCode: Sendable, Hashable {
  public enum Channel: String, Sendable, Hashable {
    case sms
    case email
    /// A code that a user or an operator passes on to add another device to the account.
    case link

    /// How many wrong guesses a code survives.
    ///
    /// Any client that knows a name can guess at its link codes, so with five it could invalidate them. They have 39
    /// bits, and each app instance that guesses has an attempt limit of its own: a thousand guesses succeed once in
    /// five hundred million.
    public var mostFailures: Int {
      switch self {
      case .sms, .email: 5
      case .link: 1000
      }
    }
  }

  public static let lifetime = Duration.seconds(300)
  /// How long after one the next may be sent.
  public static let resendInterval = Duration.seconds(60)
  /// How many may go to one account, and to one target, in an hour.
  public static let mostInAnHour = 5

  public let id: UUID
  /// The owner of the code: an account as seen from one app instance.
  public let subject: String
  public let channel: Channel
  /// The keyed hash of code and id. For a code that was never sent, random bytes.
  public let hash: [UInt8]
  /// The keyed hash of the number or address that it went to.
  public let target: [UInt8]
  public let createdAt: Timestamp
  public let expiresAt: Timestamp
  /// Whether a client has requested the code. A code that is sent at sign-in is not claimed until a client requests
  /// it.
  public var isClaimed: Bool
  public var failures: Int
  public var isSpent: Bool

  public init(
    id: UUID, subject: String, channel: Channel, hash: [UInt8], target: [UInt8], createdAt: Timestamp,
    expiresAt: Timestamp, isClaimed: Bool, failures: Int = 0, isSpent: Bool = false
  ) {
    self.id = id
    self.subject = subject
    self.channel = channel
    self.hash = hash
    self.target = target
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.isClaimed = isClaimed
    self.failures = failures
    self.isSpent = isSpent
  }

  public func isOpen(at now: Timestamp) -> Bool {
    !isSpent && failures < channel.mostFailures && now < expiresAt
  }
}
