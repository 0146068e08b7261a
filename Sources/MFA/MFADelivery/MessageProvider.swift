internal import ByteCoding
public import MFADomain

/// A service that delivers messages to people.
public protocol MessageProvider: Sendable {
  /// Hands one message over; it has arrived there when this returns.
  func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure)
}

/// Why a message was not taken.
public struct DeliveryFailure: Error, Sendable, Hashable {
  /// For the log: without code and address.
  public let reason: String
  /// Whether another attempt may go better.
  public let isTemporary: Bool
  /// Whether the provider may have taken the message all the same: it had all of it, and gave no answer.
  public let isDoubtful: Bool

  public init(reason: String, isTemporary: Bool, isDoubtful: Bool = false) {
    self.reason = reason
    self.isTemporary = isTemporary
    self.isDoubtful = isDoubtful
  }
}

/// What a message says.
struct MessageText {
  let message: OutgoingMessage
  /// The domain for which autofill offers the code, and that the message names.
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
      A backup code is being used to recover your account at \(domain). From \(Timestamp(seconds: readyAt.seconds)) on it can bring in a new \
      device, and all others lose access. If this is you, do nothing.

      If not, stop it: in the app, where you are signed in, or on any device with the code \(stopCode). Then make new \
      backup codes.
      """
    case .recoveryCompleted:
      """
      Your account at \(domain) was recovered: a new device was brought in, and all others were removed. If this was not \
      you, contact the operator of \(domain) at once.
      """
    }
  }
}
