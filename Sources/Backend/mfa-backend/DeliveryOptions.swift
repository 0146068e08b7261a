internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import Logging
internal import MFADelivery
internal import MFADomain

/// The options for the delivery of SMS and e-mail.
struct DeliveryOptions: ParsableArguments {
  @Option(
    name: .customLong("sms-sink"), help: "log: writes codes to the log instead of sending them, for development only.")
  var smsSink: String?

  @Option(name: .customLong("sms-url"), help: "A server with the API of api.twilio.com.")
  var smsURL: String?

  @Option(name: .customLong("sms-account"), help: "The account at the SMS provider.")
  var smsAccount: String?

  @Option(name: .customLong("sms-token-file"), help: "File with the token of the account.")
  var smsTokenFile: String?

  @Option(name: .customLong("sms-from"), help: "The phone number that sends the SMS.")
  var smsSender: String?

  @Option(help: "The mail server, HOST:PORT or [ADDRESS]:PORT. TLS is required.")
  var smtp: String?

  @Option(
    name: .customLong("smtp-tls"),
    help: "starttls, or implicit for TLS from the beginning, which is the default of port 465.")
  var smtpTLS: String?

  @Option(
    name: .customLong("smtp-ehlo"), help: "The name that EHLO tells the mail server, if not the domain of --smtp-from.")
  var smtpGreeting: String?

  @Option(name: .customLong("smtp-ca"), help: "PEM file with the roots that verify the mail server.")
  var smtpAuthority: String?

  @Option(name: .customLong("smtp-user"), help: "The user at the mail server.")
  var smtpUser: String?

  @Option(name: .customLong("smtp-password-file"), help: "File with the password of the user.")
  var smtpPasswordFile: String?

  @Option(
    name: .customLong("smtp-token-file"), help: "File with an access token of the user for XOAUTH2, not a password.")
  var smtpTokenFile: String?

  @Option(name: .customLong("smtp-from"), help: "The sender address of e-mail.")
  var smtpSender: String?

  @Option(help: "The domain for which phones autofill codes.")
  var domain: String?

  var flags: [FlagSetting] {
    [
      FlagSetting("--sms-sink", "sms.sink", smsSink), FlagSetting("--sms-url", "sms.url", smsURL),
      FlagSetting("--sms-account", "sms.account", smsAccount),
      FlagSetting("--sms-token-file", "sms.token_file", smsTokenFile),
      FlagSetting("--sms-from", "sms.from", smsSender), FlagSetting("--smtp", "email.smtp", smtp),
      FlagSetting("--smtp-ca", "email.ca_file", smtpAuthority), FlagSetting("--smtp-user", "email.user", smtpUser),
      FlagSetting("--smtp-password-file", "email.password_file", smtpPasswordFile),
      FlagSetting("--smtp-token-file", "email.token_file", smtpTokenFile),
      FlagSetting("--smtp-tls", "email.tls", smtpTLS), FlagSetting("--smtp-ehlo", "email.ehlo", smtpGreeting),
      FlagSetting("--smtp-from", "email.from", smtpSender), FlagSetting("--domain", "domain", domain),
    ].compactMap(\.self)
  }
}

/// The providers that messages go through; `nil` for none.
struct MessageProviders: Sendable {
  let phone: (any MessageProvider)?
  let email: (any MessageProvider)?
  let push: PushProviders
  /// Makes the outbox that writes messages to the log.
  let log: @Sendable (Logger) -> LogOutbox
}

extension BackendSettings {
  /// Reads the secrets of the providers.
  ///
  /// - Throws: `Failure` if a file cannot be read or is not private.
  func messageProviders() throws -> MessageProviders {
    let templates = try messageTemplates()
    return MessageProviders(
      phone: try smsProvider(templates), email: try mailProvider(templates), push: try pushProviders(templates),
      log: { LogOutbox(logger: $0, domain: domain, templates: templates) })
  }

  /// Reads the templates of messages.
  ///
  /// - Throws: `Failure` with all faults.
  func messageTemplates() throws(Failure) -> MessageTemplates {
    guard let templates else { return .builtIn }
    let files = try TemplateFolder.read(templates)
    do throws(MessageTemplates.Faults) {
      return try MessageTemplates(files, service: issuer)
    } catch {
      let most = 5
      let more = error.reasons.count > most ? "; and \(error.reasons.count - most) more" : ""
      throw Failure(
        .configuration, error.reasons.prefix(most).joined(separator: "; ") + more,
        hint: "correct the files in \(templates), or remove messages.templates for the built-in texts")
    }
  }

  func smsProvider(_ templates: MessageTemplates = .builtIn) throws -> (any ProbedProvider)? {
    switch texting {
    case .off, .log: return nil
    case .provider(let url, let account, let tokenFile, let sender):
      return TwilioProvider(
        base: url, account: account, token: try Self.secret(in: tokenFile), sender: sender, domain: domain,
        templates: templates)
    case .template(let request): return try provider(of: request, templates)
    }
  }

  private func provider(
    of request: TextRequest, _ templates: MessageTemplates
  ) throws(Failure) -> HTTPTextProvider {
    if let file = request.authorityFile { try InputFile.require(file, "the SMS server's root file") }
    // Read now, so that a file that cannot be used is a fault of the configuration.
    if let file = request.tokenFile { _ = try Self.secret(in: file) }
    do throws(HTTPTextTemplate.Fault) {
      return HTTPTextProvider(
        try request.template(), origin: request.origin, sender: request.sender ?? "",
        token: request.tokenFile.map(Self.reader),
        expected: request.status, authorityFile: request.authorityFile, domain: domain, templates: templates)
    } catch {
      throw Failure(
        .configuration, "\(error.key): \(error.reason)",
        hint: "mfa-backend check --reference has an example of each key")
    }
  }

  func mailProvider(_ templates: MessageTemplates = .builtIn) throws -> SMTPProvider? {
    guard let mail else { return nil }
    if let file = mail.authorityFile { try InputFile.require(file, "the mail server's root file") }
    // As for SMS: a file that cannot be used is a fault of the configuration, and not of each mail.
    if let file = mail.tokenFile { _ = try Self.secret(in: file) }
    return SMTPProvider(
      server: SMTPProvider.Server(
        host: mail.host, port: mail.port, authority: mail.authorityFile, beginsWithTLS: mail.beginsWithTLS,
        user: mail.user, password: try mail.passwordFile.map(Self.secret)),
      sender: mail.sender, domain: domain, templates: templates, greeting: mail.greeting,
      token: mail.tokenFile.map(Self.reader))
  }

  /// Reads a file with a token each time: tokens live for an hour or so, and another program renews the file. A warning
  /// about its mode was printed when the configuration was loaded, and is not repeated for each message.
  private static func reader(of path: String) -> @Sendable () throws -> String {
    { try InputFile.secretLine(path, "the secret file", warns: false) }
  }

  /// Reads the first line of a file with a secret.
  private static func secret(in path: String) throws(Failure) -> String {
    try InputFile.secretLine(path, "the secret file")
  }
}

extension BackendSettings.TextRequest {
  /// The template of the request.
  func template() throws(HTTPTextTemplate.Fault) -> HTTPTextTemplate {
    try HTTPTextTemplate(
      .init(
        method: method, url: url, headers: headers, body: body,
        escape: escape.flatMap(HTTPTextTemplate.Escape.init), hasToken: tokenFile != nil, hasSender: sender != nil))
  }
}

extension HTTPTextTemplate.Fault {
  /// The key of the setting with this fault.
  var key: String {
    switch part {
    case .token: "sms.http.token_file"
    case .headers: "sms.http.headers[0]"
    case .method, .url, .body, .escape: "sms.http.\(part.rawValue)"
    }
  }
}
