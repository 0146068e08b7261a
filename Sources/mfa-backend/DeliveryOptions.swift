internal import ArgumentParser
internal import Foundation
internal import Logging
internal import MFADelivery
internal import MFADomain
internal import ServiceLifecycle

/// Who takes messages to people.
struct DeliveryOptions: ParsableArguments {
  enum Sink: String, ExpressibleByArgument, CaseIterable { case log }

  @Option(
    name: .customLong("sms-sink"), help: "log: writes codes to the log in place of sending them, for development only.")
  var smsSink: Sink?

  @Option(name: .customLong("sms-url"), help: "A server that speaks as api.twilio.com does.")
  var smsURL = "https://api.twilio.com"

  @Option(name: .customLong("sms-account"), help: "The account there.")
  var smsAccount: String?

  @Option(name: .customLong("sms-token-file"), help: "File with the account's token.")
  var smsTokenFile: String?

  @Option(name: .customLong("sms-from"), help: "The number that SMS come from.")
  var smsSender: String?

  @Option(help: "The mail server, HOST:PORT. TLS by STARTTLS is required.")
  var smtp: String?

  @Option(name: .customLong("smtp-ca"), help: "PEM file with the roots that the mail server is checked against.")
  var smtpAuthority: String?

  @Option(name: .customLong("smtp-user"), help: "The user there.")
  var smtpUser: String?

  @Option(name: .customLong("smtp-password-file"), help: "File with the user's password.")
  var smtpPasswordFile: String?

  @Option(name: .customLong("smtp-from"), help: "The address that e-mail comes from.")
  var smtpSender: String?

  @Option(help: "Whom a telephone's autofill fills codes in for.")
  var domain = "localhost"

  func validate() throws {
    let sms = [smsAccount, smsTokenFile, smsSender]
    guard sms.allSatisfy({ $0 == nil }) || sms.allSatisfy({ $0 != nil }) else {
      throw ValidationError("--sms-account, --sms-token-file and --sms-from belong together")
    }
    guard smsSink == nil || smsAccount == nil else {
      throw ValidationError("--sms-sink and --sms-account exclude each other")
    }
    guard (smtp == nil) == (smtpSender == nil) else { throw ValidationError("--smtp and --smtp-from belong together") }
    guard (smtpUser == nil) == (smtpPasswordFile == nil) else {
      throw ValidationError("--smtp-user and --smtp-password-file belong together")
    }
  }

  /// What takes messages, and what must run for it.
  func outbox(_ logger: Logger) throws -> (outbox: any Outbox, services: [any Service]) {
    if smsSink == .log { return (LogOutbox(logger: logger), []) }
    let queue = QueuedOutbox(phone: try sms(), email: try email(), logger: logger)
    return (queue, [queue])
  }

  private func sms() throws -> (any MessageProvider)? {
    guard let smsAccount, let smsTokenFile, let smsSender else { return nil }
    return TwilioProvider(
      base: smsURL, account: smsAccount, token: try Self.secret(in: smsTokenFile), sender: smsSender, domain: domain)
  }

  private func email() throws -> (any MessageProvider)? {
    guard let smtp, let smtpSender else { return nil }
    let parts = smtp.split(separator: ":")
    guard parts.count == 2, let port = UInt16(parts[1]) else {
      throw ValidationError("--smtp \(smtp): write HOST:PORT")
    }
    return SMTPProvider(
      server: SMTPProvider.Server(
        host: String(parts[0]), port: Int(port), authority: smtpAuthority, user: smtpUser,
        password: try smtpPasswordFile.map(Self.secret)),
      sender: try EmailAddress(smtpSender), domain: domain)
  }

  /// The first line of a file.
  private static func secret(in path: String) throws -> String {
    let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    guard let line = text.split(whereSeparator: \.isNewline).first else { throw ValidationError("\(path) is empty") }
    return String(line)
  }
}
