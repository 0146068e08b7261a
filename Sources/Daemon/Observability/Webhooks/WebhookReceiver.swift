/// The server that gets the messages. An implementation verifies the server's certificate, follows no redirect and ends
/// an exchange by a deadline of its own.
public protocol WebhookReceiver: Sendable {
  /// Posts `body` as `application/json` with the further `fields`.
  func post(_ body: [UInt8], fields: [(name: String, value: String)]) async throws(WebhookFault) -> WebhookAnswer
}

/// What the receiver answered; its body means nothing.
public struct WebhookAnswer: Sendable, Hashable {
  public let status: Int
  /// `Retry-After` in seconds (RFC 9110 section 10.2.3); `nil` without it or with a date.
  public let retryAfter: Duration?

  public init(status: Int, retryAfter: Duration? = nil) { (self.status, self.retryAfter) = (status, retryAfter) }
}

/// Why there was no answer.
public struct WebhookFault: Error, Sendable, Hashable {
  public let reason: String

  public init(reason: String) { self.reason = reason }
}

/// The meaning of an answer, or of its absence.
enum WebhookOutcome: Sendable, Hashable {
  case delivered
  /// The receiver does not take this message: others may be taken.
  case refused(status: Int)
  /// The receiver takes no message now.
  case unavailable(String, retryAfter: Duration?)
  /// The file of this message cannot be read now: others may be readable.
  case inaccessible(String)
  /// Another process has sent the message.
  case gone
  /// The file is damaged, or a file of others.
  case unreadable

  /// Whether it shows that the receiver answers.
  var isAnswer: Bool {
    switch self {
    case .delivered, .refused: true
    case .unavailable, .inaccessible, .gone, .unreadable: false
    }
  }

  init(_ answer: WebhookAnswer) {
    switch answer.status {
    case 200..<300: self = .delivered
    case 408, 425, 429, 500..<600:
      self = .unavailable("it answered with status \(answer.status)", retryAfter: answer.retryAfter)
    default: self = .refused(status: answer.status)
    }
  }
}
