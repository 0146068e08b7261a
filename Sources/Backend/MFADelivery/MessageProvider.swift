internal import ByteCoding
public import MFADomain

/// A service that delivers messages to people.
public protocol MessageProvider: Sendable {
  /// Hands one message over. Returns once the provider has accepted it.
  ///
  /// - Throws: `DeliveryFailure` if the provider did not accept it.
  func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure)
}

/// A provider that can be asked whether it would accept a message.
public protocol ProbedProvider: MessageProvider {
  /// Reaches the server, and sends no message.
  ///
  /// - Throws: `DeliveryFailure` if the server cannot be reached or refuses the credentials.
  func probe() async throws(DeliveryFailure)
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

/// The text of a message: by its template, or the built-in one.
struct MessageText {
  let subject: String
  let body: String

  /// - Parameter domain: the domain for autofill, and the name of the service in messages about the account.
  init(message: OutgoingMessage, domain: String, templates: MessageTemplates = .builtIn) {
    guard let template = templates.template(for: message) else {
      (subject, body) = (Self.subject(of: message.content), Self.body(of: message.content, domain: domain))
      return
    }
    let values = templates.values(of: message, domain: domain)
    (subject, body) = (template.subject(values), template.body(values))
  }

  private static func subject(of content: OutgoingMessage.Content) -> String {
    switch content {
    case .code: "Your verification code"
    case .recoveryStarted: "Your account is being recovered"
    case .recoveryCompleted: "Your account was recovered"
    }
  }

  private static func body(of content: OutgoingMessage.Content, domain: String) -> String {
    switch content {
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
