internal import ByteCoding
public import MFADomain

/// A service that delivers messages to people.
public protocol MessageProvider: Sendable {
  /// Hands one message over. Returns once the provider has accepted it.
  ///
  /// - Throws: `DeliveryFailure` if the provider did not accept it.
  func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure)
}

/// The reason why a message was not accepted.
public struct DeliveryFailure: Error, Sendable, Hashable {
  /// The reason for the log, without code and recipient.
  public let reason: String
  /// Whether a later attempt may succeed.
  public let isTemporary: Bool
  /// Whether the provider may have accepted the message anyway: it received all of it and did not answer.
  public let isDoubtful: Bool

  /// Creates the failure.
  public init(reason: String, isTemporary: Bool, isDoubtful: Bool = false) {
    self.reason = reason
    self.isTemporary = isTemporary
    self.isDoubtful = isDoubtful
  }
}

/// The text of a message.
struct MessageText {
  let message: OutgoingMessage
  /// The domain for autofill, and the name of the service in messages about the account.
  let domain: String

  var subject: String {
    switch message.content {
    case .code: "Your verification code"
    case .recoveryStarted: "Your account is being recovered"
    case .recoveryCompleted: "Your account was recovered"
    }
  }

  var body: String {
    switch message.content {
    // The last line binds the code to its domain, for autofill.
    case .code(let code): "Your OTP is \(code)\n\n@\(domain) #\(code)"
    case .recoveryStarted(let stopCode, let readyAt):
      """
      A backup code was used to recover your account at \(domain). From \(Timestamp(seconds: readyAt.seconds)) on, a \
      new device can be added and all other devices lose access. If this is you, do nothing.

      If not, stop it: in the app, where you are signed in, or on any device with the code \(stopCode). Then create \
      new backup codes.
      """
    case .recoveryCompleted:
      """
      Your account at \(domain) was recovered: a new device was added and all others were removed. If this was not \
      you, contact the operator of \(domain) immediately.
      """
    }
  }
}
