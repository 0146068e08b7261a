internal import ByteCoding
internal import MFADomain

/// The texts of messages: by templates, and the built-in English ones for messages without a template.
///
/// A template is a text in UTF-8. Its name has the message, the channel and a language: `code.sms.de.txt`. Without a
/// language, `code.sms.txt`, it is for all languages that have no template. A template for e-mail or a push notification
/// begins with a line `Subject: …` and an empty line. `{{code}}` stands for a value.
public struct MessageTemplates: Sendable, Hashable {
  /// The largest template, in bytes.
  public static let largestFile = 1 << 14
  /// The maximum number of templates.
  public static let mostFiles = 500

  /// No templates: every message has its built-in text.
  public static let builtIn = MessageTemplates(service: "", templates: [:])

  /// The name of the service, for `{{service}}`.
  private let service: String
  private let templates: [TemplateName: MessageTemplate]

  /// The faults of templates, each with the name of its file and the line.
  public struct Faults: Error, Sendable, Hashable {
    /// One sentence each, without a full stop. There is at least one.
    public let reasons: [String]
  }

  private init(service: String, templates: [TemplateName: MessageTemplate]) {
    self.service = service
    self.templates = templates
  }

  /// Reads templates.
  ///
  /// - Parameters:
  ///   - files: the names and the contents of the files.
  ///   - service: the name of the service.
  /// - Throws: all faults: an unknown name, a text that is not UTF-8 or too long, an unknown placeholder, a missing one.
  public init(_ files: [(name: String, content: [UInt8])], service: String) throws(Faults) {
    var templates: [TemplateName: MessageTemplate] = [:]
    var reasons: [String] = []
    if files.count > Self.mostFiles { reasons.append("more than \(Self.mostFiles) files") }
    for (name, content) in files.prefix(Self.mostFiles) {
      do throws(TemplateFault) {
        let key = try TemplateName(name)
        guard templates[key] == nil else { throw TemplateFault("is there twice, in another case") }
        templates[key] = try MessageTemplate(content, for: key)
      } catch {
        let line = error.line.map { ":\($0)" } ?? ""
        reasons.append("\(String(name.prefix(100)).withoutControls)\(line): \(error.reason)")
      }
    }
    guard reasons.isEmpty else { throw Faults(reasons: reasons) }
    self.init(service: service, templates: templates)
  }

  /// The number of templates.
  public var count: Int { templates.count }

  /// The languages of the templates, in order; the default for all others is not one of them.
  public var languages: [String] { Set(templates.keys.map(\.language)).subtracting([""]).sorted() }

  /// The template for a message; `nil` for its built-in text.
  func template(for message: OutgoingMessage) -> MessageTemplate? {
    guard !templates.isEmpty else { return nil }
    return template(.init(message.content), .init(message.destination), for: message.languages)
  }

  /// The title and the body of a push notification by its template; `nil` for the built-in text.
  func text(of notification: PushNotification, domain: String) -> (title: String, body: String)? {
    guard let template = template(.init(notification.content), .push, for: notification.languages) else { return nil }
    let values = [MessagePlaceholder.domain: domain, .service: service].mapValues { $0.withoutControls }
    return (template.subject(values), template.body(values))
  }

  private func template(
    _ kind: TemplateName.Kind, _ channel: TemplateName.Channel, for languages: Languages
  ) -> MessageTemplate? {
    var name = TemplateName(kind: kind, channel: channel, language: "")
    name.language =
      languages.lookup { tag in
        var named = name
        named.language = tag
        return templates[named] != nil
      } ?? ""
    return templates[name]
  }

  /// The values of the placeholders of a message.
  func values(of message: OutgoingMessage, domain: String) -> [MessagePlaceholder: String] {
    var values: [MessagePlaceholder: String] = [.domain: domain, .service: service]
    switch message.content {
    case .code(let code):
      values[.code] = code
      values[.minutes] = "\(max(1, (message.lifetime.components.seconds + 59) / 60))"
    case .recoveryStarted(let stopCode, let readyAt):
      values[.stopCode] = stopCode
      values[.readyAt] = "\(Timestamp(seconds: readyAt.seconds))"
    case .recoveryCompleted: break
    }
    return values.mapValues { $0.withoutControls }
  }
}

extension String {
  /// The text with a space in place of each control character, line ends included.
  var withoutControls: String {
    String(String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
  }
}
