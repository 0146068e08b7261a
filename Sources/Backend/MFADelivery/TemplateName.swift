internal import ByteCoding
internal import MFADomain

/// What a template stands for, as its name has it.
struct TemplateName: Sendable, Hashable {
  enum Kind: String, CaseIterable {
    case code
    case recoveryStarted = "recovery-started"
    case recoveryCompleted = "recovery-completed"
    case signIn = "sign-in"
    case notice

    init(_ content: OutgoingMessage.Content) {
      switch content {
      case .code: self = .code
      case .recoveryStarted: self = .recoveryStarted
      case .recoveryCompleted: self = .recoveryCompleted
      }
    }

    init(_ content: PushNotification.Content) {
      switch content {
      case .signIn: self = .signIn
      case .notice: self = .notice
      }
    }

    /// The channels by which messages of this kind go.
    var channels: [Channel] {
      switch self {
      case .code, .recoveryStarted, .recoveryCompleted: [.sms, .email]
      case .signIn, .notice: [.push]
      }
    }

    /// The placeholders that a template of this kind may have.
    var placeholders: [MessagePlaceholder] {
      switch self {
      case .code: [.code, .domain, .minutes, .service]
      case .recoveryStarted: [.domain, .readyAt, .service, .stopCode]
      case .recoveryCompleted, .signIn, .notice: [.domain, .service]
      }
    }

    /// The placeholder without which the message is of no use.
    var required: MessagePlaceholder? {
      switch self {
      case .code: .code
      case .recoveryStarted: .stopCode
      case .recoveryCompleted, .signIn, .notice: nil
      }
    }
  }

  enum Channel: String, CaseIterable {
    case sms
    case email
    case push

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
    let known = Kind.allCases.flatMap { kind in kind.channels.map { "\(kind.rawValue).\($0.rawValue)" } }
    guard (3...4).contains(parts.count), parts.last == "txt", let kind = Kind(rawValue: parts[0]),
      let channel = Channel(rawValue: parts[1]), kind.channels.contains(channel)
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
