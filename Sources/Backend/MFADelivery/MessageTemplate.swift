internal import ByteCoding

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
  /// The longest template for a push notification, in characters. Telephones show about half of it.
  private static let longestPush = 300
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
    if name.channel != .sms {
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
    if name.channel == .push, lines.reduce(lines.count - 1, { $0 + $1.count }) > Self.longestPush {
      throw TemplateFault("is longer than \(Self.longestPush) characters, which is too much for a push notification")
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
