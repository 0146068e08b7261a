internal import ByteCoding
public import Logging
public import MFADomain

/// Writes messages to the log, including codes. For development only: a reader of the log can sign in.
public struct LogOutbox: Outbox {
  private let logger: Logger

  /// Creates the outbox.
  public init(logger: Logger) { self.logger = logger }

  public func send(_ message: OutgoingMessage) {
    switch message.destination {
    case .phone(let number): logger.info("📱 SMS to \(number.text): \(Self.text(of: message.content))")
    case .email(let address): logger.info("📧 E-mail to \(address.text): \(Self.text(of: message.content))")
    }
  }

  private static func text(of content: OutgoingMessage.Content) -> String {
    switch content {
    case .code(let code): "Your OTP is \(code)"
    case .recoveryStarted(let code, let readyAt):
      "A recovery of your account is ready from \(readyAt.wholeSecond) on. Stop it: \(code)"
    case .recoveryCompleted: "Your account was recovered"
    }
  }
}
