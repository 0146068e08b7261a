internal import ByteCoding
public import Logging
public import MFADomain

/// Writes messages to the log, including codes. For development only: a reader of the log can sign in.
public struct LogOutbox: Outbox {
  private let logger: Logger
  private let domain: String
  private let templates: MessageTemplates

  /// Creates the outbox.
  ///
  /// - Parameters:
  ///   - domain: the domain for the text of messages with a template.
  ///   - templates: the texts of messages; a message without a template is in short form.
  public init(logger: Logger, domain: String = "localhost", templates: MessageTemplates = .builtIn) {
    self.logger = logger
    self.domain = domain
    self.templates = templates
  }

  public func send(_ message: OutgoingMessage) {
    switch message.destination {
    case .phone(let number): logger.info("📱 SMS to \(number.text): \(text(of: message))")
    case .email(let address): logger.info("📧 E-mail to \(address.text): \(text(of: message))")
    }
  }

  private func text(of message: OutgoingMessage) -> String {
    guard templates.template(for: message) != nil else { return Self.text(of: message.content) }
    return MessageText(message: message, domain: domain, templates: templates).body
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
