internal import ByteCoding
internal import ConfigurationEngine
internal import Foundation
internal import HTTPClientTransport
internal import Wire
internal import MFADomain
internal import Observability

/// A server of the operator's that hears of new entries of the history, by signed messages (Standard Webhooks 1.0.0).
public struct WebhookTarget: Sendable, Hashable {
  /// The URL of the receiver.
  public let url: String
  /// The file with the secrets that sign: see `WebhookSecretFile`. It is read for each attempt.
  public let secretFile: String
  /// A PEM file with the roots to trust in place of the system's.
  public let authorityFile: String?
  /// The events that the receiver hears of; empty for all.
  public let events: Set<String>

  /// Creates a target.
  public init(url: String, secretFile: String, authorityFile: String? = nil, events: Set<String> = []) {
    (self.url, self.secretFile, self.authorityFile, self.events) = (url, secretFile, authorityFile, events)
  }

  /// Server and port, for logs: the path may have a secret.
  var place: String { Self.place(of: url) }

  /// The server and port of `url`.
  public static func place(of url: String) -> String {
    guard let url = URL(string: url), let host = url.host() else { return "the receiver" }
    return host + (url.port.map { ":\($0)" } ?? "")
  }
}

/// Posts entries one after the other, each until the receiver takes it.
final class AuditWebhook: Sendable {
  /// How often a message is sent that the receiver refuses, before the next one's turn.
  static let mostRefusals = 10
  /// For one attempt.
  private static let patience = Duration.seconds(10)
  /// For one batch: less than the time for which a process has an export without a sign of life.
  static let batchTime = Duration.seconds(15)

  let target: WebhookTarget
  private let transport: HTTPClientTransport

  init(_ target: WebhookTarget) {
    self.target = target
    transport = HTTPClientTransport(
      .init(authorityFile: target.authorityFile, largestAnswer: 1 << 16, exchangeTime: Self.patience))
  }

  /// Whether the receiver hears of `entry`.
  func concerns(_ entry: AuditEntry) -> Bool { target.events.isEmpty || target.events.contains(entry.event) }

  /// What the receiver did with a message.
  enum Outcome: Sendable, Hashable {
    case delivered
    /// It refuses this message, and may take others.
    case refused(reason: String)
  }

  /// Sends an entry.
  ///
  /// - Throws: `AuditExportFault` if the receiver takes no message now.
  func send(_ entry: AuditExports.Entry, at now: Timestamp) async throws(AuditExportFault) -> Outcome {
    guard let secrets = WebhookSecretFile.secrets(ofFile: target.secretFile) else {
      throw AuditExportFault(reason: "\(target.secretFile) cannot be read, or has no secrets")
    }
    guard let url = URL(string: target.url) else { throw AuditExportFault(reason: "webhooks.url is no URL") }
    // The same for each attempt and each backend: the end of the chain up to this entry.
    let message = WebhookMessage(
      entry.entry.event, WebhookData(entry.entry), at: entry.entry.at, id: "msg_" + Hex.encode(entry.hash.prefix(16)))
    let fields = WebhookSignature.fields(for: message, secrets: secrets, at: now)
    let request = HTTPRequest(
      method: .post, url: url,
      headers: [HTTPField("Content-Type", "application/json")] + fields.map { HTTPField($0.name, $0.value) },
      body: message.body)
    let status: Int
    do throws(TransportError) {
      status = try await transport.send(request).status
    } catch {
      switch error {
      // The receiver has answered, and would answer in the same way again.
      case .tooLarge, .malformed: return .refused(reason: "\(error)")
      case .unreachable, .untrusted, .lost: throw AuditExportFault(reason: "\(target.place): \(error)")
      }
    }
    switch status {
    case 200..<300: return .delivered
    case 408, 425, 429, 500..<600:
      throw AuditExportFault(reason: "\(target.place) answered with status \(status)")
    default: return .refused(reason: "status \(status)")
    }
  }
}

/// What a receiver may know about an entry.
private struct WebhookData: Encodable, Sendable {
  let account: String?
  let actor: String
  let detail: String
  let requestId: String
  let sequence: Int64

  init(_ entry: AuditEntry) {
    (account, actor, detail) = (entry.account, entry.actor, entry.detail)
    (requestId, sequence) = (entry.requestID, entry.sequence)
  }
}
