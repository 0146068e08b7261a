public import Logging
public import MFADomain

/// Writes messages to the log, codes and all. For development only: whoever reads the log can sign in.
public struct LogOutbox: Outbox {
  private let logger: Logger

  public init(logger: Logger) { self.logger = logger }

  public func send(_ message: OutgoingMessage) {
    switch message.destination {
    case .phone(let number): logger.info("📱 SMS to \(number.text): Your OTP is \(message.code)")
    case .email(let address): logger.info("📧 E-mail to \(address.text): Your OTP is \(message.code)")
    }
  }
}
