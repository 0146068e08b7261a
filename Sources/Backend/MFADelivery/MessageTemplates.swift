internal import ByteCoding
internal import MFADomain

/// The texts of messages: by templates, and the built-in English ones for messages without a template.
///
/// A template is a text in UTF-8. Its name has the message, the channel and a language: `code.sms.de.txt`. Without a
/// language, `code.sms.txt`, it is for all languages that have no template. A template for e-mail begins with a line
/// `Subject: …` and an empty line. `{{code}}` stands for a value.
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
    var name = TemplateName(kind: .init(message.content), channel: .init(message.destination), language: "")
    name.language =
      message.languages.lookup { tag in
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

/// What a template stands for, as its name has it.
struct TemplateName: Sendable, Hashable {
  enum Kind: String, CaseIterable {
    case code
    case recoveryStarted = "recovery-started"
    case recoveryCompleted = "recovery-completed"

    init(_ content: OutgoingMessage.Content) {
      switch content {
      case .code: self = .code
      case .recoveryStarted: self = .recoveryStarted
      case .recoveryCompleted: self = .recoveryCompleted
      }
    }

    /// The placeholders that a template of this kind may have.
    var placeholders: [MessagePlaceholder] {
      switch self {
      case .code: [.code, .domain, .minutes, .service]
      case .recoveryStarted: [.domain, .readyAt, .service, .stopCode]
      case .recoveryCompleted: [.domain, .service]
      }
    }

    /// The placeholder without which the message is of no use.
    var required: MessagePlaceholder? {
      switch self {
      case .code: .code
      case .recoveryStarted: .stopCode
      case .recoveryCompleted: nil
      }
    }
  }

  enum Channel: String, CaseIterable {
    case sms
    case email

    init(_ destination: OutgoingMessage.Destination) {
      switch destination {
      case .phone: self = .sms
      case .email: self = .email
      }
    }
  }

  let kind: Kind
  let channel: Channel
  /// Empty for all languages without a template.
  var language: String

  init(kind: Kind, channel: Channel, language: String) {
    self.kind = kind
    self.channel = channel
    self.language = language
  }

  /// Reads the name of a file: `code.sms.txt` or `code.email.de-ch.txt`.
  init(_ name: String) throws(TemplateFault) {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    let known = Kind.allCases.flatMap { kind in Channel.allCases.map { "\(kind.rawValue).\($0.rawValue)" } }
    guard (3...4).contains(parts.count), parts.last == "txt", let kind = Kind(rawValue: parts[0]),
      let channel = Channel(rawValue: parts[1])
    else {
      let near = Suggestions.nearest(to: parts.prefix(2).joined(separator: "."), in: known)
      throw TemplateFault(
        "is not the name of a template: write MESSAGE.CHANNEL.txt or MESSAGE.CHANNEL.LANGUAGE.txt, with one of "
          + known.joined(separator: ", ") + (near.map { " (did you mean \($0).txt)" } ?? ""))
    }
    self.init(kind: kind, channel: channel, language: "")
    guard parts.count == 4 else { return }
    guard let tag = Languages.tag(parts[2]) else {
      throw TemplateFault("has no language tag before .txt: write for example de or pt-BR")
    }
    language = tag
  }
}

/// A name in a template that stands for a value.
enum MessagePlaceholder: String, Sendable, Hashable, CaseIterable {
  case code
  case domain
  case minutes
  case readyAt = "ready_at"
  case service
  case stopCode = "stop_code"
}

/// The reason why a template cannot be used, and its line, counted from 1.
struct TemplateFault: Error {
  let line: Int?
  let reason: String

  init(_ reason: String, line: Int? = nil) {
    self.line = line
    self.reason = reason
  }
}

/// The parsed text of one message.
struct MessageTemplate: Sendable, Hashable {
  private enum Part: Sendable, Hashable {
    case text(String)
    case value(MessagePlaceholder)
  }

  /// The longest template for SMS, in characters: ten parts of a long message hold it with its values.
  private static let longestSMS = 1000
  /// The longest subject, in characters.
  private static let longestSubject = 150

  private let subject: [Part]
  private let body: [Part]

  init(_ content: [UInt8], for name: TemplateName) throws(TemplateFault) {
    guard content.count <= MessageTemplates.largestFile else {
      throw TemplateFault("is larger than \(MessageTemplates.largestFile) bytes")
    }
    var text = String(decoding: content, as: UTF8.self)
    // Decoding replaces malformed UTF-8, and so changes the text.
    guard text.utf8.elementsEqual(content) else { throw TemplateFault("is not UTF-8") }
    if text.unicodeScalars.first == "\u{FEFF}" { text.unicodeScalars.removeFirst() }
    var lines = text.replacing("\r\n", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() where line.unicodeScalars.contains(where: \.isControl) {
      throw TemplateFault("contains a control character", line: index + 1)
    }
    while lines.last?.isEmpty == true { lines.removeLast() }
    guard !lines.isEmpty else { throw TemplateFault("is empty") }
    var first = 1
    if name.channel == .email {
      let field = "Subject:"
      guard lines[0].hasPrefix(field), lines.count > 2, lines[1].isEmpty else {
        throw TemplateFault("must begin with a line `Subject: …` and an empty line, before the text", line: 1)
      }
      let title = lines[0].dropFirst(field.count).drop { $0 == " " }
      guard !title.isEmpty, title.count <= Self.longestSubject else {
        throw TemplateFault("must have a subject of 1 to \(Self.longestSubject) characters", line: 1)
      }
      subject = try Self.parts(of: [title], from: 1, name.kind)
      lines.removeFirst(2)
      first = 3
    } else {
      subject = []
    }
    body = try Self.parts(of: lines, from: first, name.kind)
    if name.channel == .sms, lines.reduce(lines.count - 1, { $0 + $1.count }) > Self.longestSMS {
      throw TemplateFault("is longer than \(Self.longestSMS) characters, which is too much for an SMS")
    }
    if let required = name.kind.required, !body.contains(.value(required)) {
      throw TemplateFault("does not contain {{\(required.rawValue)}}, without which the message is of no use")
    }
  }

  /// The parts of `lines`, which are numbered from `first`.
  private static func parts(
    of lines: [Substring], from first: Int, _ kind: TemplateName.Kind
  ) throws(TemplateFault) -> [Part] {
    var parts: [Part] = []
    for (index, line) in lines.enumerated() {
      if index > 0 { parts.append(.text("\n")) }
      var rest = line
      while let open = rest.firstRange(of: "{{") {
        parts.append(.text(String(rest[..<open.lowerBound])))
        rest = rest[open.upperBound...]
        guard let close = rest.firstRange(of: "}}") else {
          throw TemplateFault("{{ has no }} in its line", line: first + index)
        }
        parts.append(.value(try placeholder(rest[..<close.lowerBound], kind, line: first + index)))
        rest = rest[close.upperBound...]
      }
      parts.append(.text(String(rest)))
    }
    return parts
  }

  private static func placeholder(
    _ text: Substring, _ kind: TemplateName.Kind, line: Int
  ) throws(TemplateFault) -> MessagePlaceholder {
    let name = text.filter { $0 != " " }
    if let known = MessagePlaceholder(rawValue: name), kind.placeholders.contains(known) { return known }
    let names = kind.placeholders.map(\.rawValue)
    let near = Suggestions.nearest(to: name, in: names).map { " (did you mean {{\($0)}})" } ?? ""
    throw TemplateFault(
      "{{\(String(name.prefix(40)))}} is unknown in this message: use \(names.map { "{{\($0)}}" }.joined(separator: ", "))"
        + near, line: line)
  }

  func subject(_ values: [MessagePlaceholder: String]) -> String { Self.text(subject, values) }
  func body(_ values: [MessagePlaceholder: String]) -> String { Self.text(body, values) }

  private static func text(_ parts: [Part], _ values: [MessagePlaceholder: String]) -> String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .value(let placeholder): values[placeholder] ?? ""
      }
    }.joined()
  }
}

extension Unicode.Scalar {
  /// Whether it is a control character other than a tabulator.
  fileprivate var isControl: Bool { self != "\t" && properties.generalCategory == .control }
}

extension String {
  /// The text with a space in place of each control character, line ends included.
  fileprivate var withoutControls: String {
    String(String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
  }
}
