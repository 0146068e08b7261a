internal import ByteCoding
internal import ConfigurationEngine
internal import Commands
internal import Wire
internal import GateService
internal import Logging
internal import Observability
internal import Settings
internal import Transport
internal import TransportEngine

/// Tells a server of the operator's about registrations, revocations and bursts of refusals.
struct GateWebhooks: Sendable {
  private let queue: WebhookQueue
  let refusalsPerMinute: Int
  private let events: Set<GateSettings.Webhooks.Event>

  /// - Throws: `Failure` if a file of the settings or the folder of the queue cannot be used.
  init(
    _ settings: GateSettings.Webhooks, proxies: ProxyVariables = .ofProcess, registry: MetricsRegistry, logger: Logger
  ) throws(Failure) {
    let spool: WebhookSpool
    do throws(WebhookSpool.Fault) {
      spool = try WebhookSpool(settings.folder)
    } catch {
      throw Failure(
        .configuration, "webhooks.folder: \(error)",
        hint: "name a folder that this gate may write to, in one that exists")
    }
    let receiver = EngineReceiver(
      client: try ServerClient(
        to: settings.receiver, caFile: settings.caFile, section: "webhooks", proxies: proxies))
    queue = WebhookQueue(
      spool, mostWaiting: settings.mostWaiting, secretFile: settings.secretFile,
      secrets: WebhookSecretFile.secrets(ofFile:),
      to: receiver,
      at: "\(settings.receiver.host):\(settings.receiver.port)", program: "sallyport", registry: registry,
      logger: logger)
    (events, refusalsPerMinute) = (settings.events, settings.refusalsPerMinute)
  }

  /// Writes and sends until the task is cancelled.
  func run() async { await queue.run() }

  /// Leaves sending to the new process of an upgrade.
  func handOver() { queue.stopSending() }

  var announcer: EventAnnouncer {
    EventAnnouncer { [queue, events] event in
      if events.contains(event.kind) { queue.add(event.message(at: .now())) }
    }
  }
}

/// Posts messages by the engine's client.
private struct EngineReceiver: WebhookReceiver {
  /// For one attempt, from connecting to the end of the answer.
  private static let patience = Duration.seconds(15)

  let client: ServerClient

  func post(
    _ body: [UInt8], fields own: [(name: String, value: String)]
  ) async throws(WebhookFault) -> WebhookAnswer {
    let path = client.address.path
    var fields = HeaderFields([
      .init(name: "Host", value: client.address.authority), .init(name: "Content-Type", value: "application/json"),
      .init(name: "User-Agent", value: "sallyport/\(Version.text)"),
    ])
    for field in own { fields.append(field.name, field.value) }
    do throws(ClientError) {
      let answer = try await client.post(
        body, to: path.hasPrefix("/") ? path : "/" + path, fields: fields, until: .now + Self.patience)
      let seconds = answer.headers.first("Retry-After").flatMap { UInt16($0) }
      return WebhookAnswer(status: answer.status, retryAfter: seconds.map { .seconds(Int($0)) })
    } catch {
      throw WebhookFault(reason: error.description)
    }
  }
}

extension GateEvent {
  fileprivate var kind: GateSettings.Webhooks.Event {
    switch self {
    case .registered: .registrations
    case .revoked, .restored, .removed: .revocations
    case .refusalsBegan, .refusalsEnded: .refusals
    }
  }

  fileprivate func message(at now: Timestamp) -> WebhookMessage {
    switch self {
    case .registered(let key, let app, let platform, let request):
      WebhookMessage(
        "key.registered", ["key": key, "app": app, "platform": platform, "request_id": request], at: now)
    case .revoked(let key, let author):
      WebhookMessage("key.revoked", ["key": key, "by": author.rawValue], at: now)
    case .restored(let key): WebhookMessage("key.restored", ["key": key], at: now)
    case .removed(let key): WebhookMessage("key.removed", ["key": key], at: now)
    case .refusalsBegan(let code, let count):
      WebhookMessage("refusals.began", RefusalCount(code: code, count: count), at: now)
    case .refusalsEnded(let code, let count):
      WebhookMessage("refusals.ended", RefusalCount(code: code, count: count), at: now)
    }
  }
}

private struct RefusalCount: Encodable, Sendable {
  let code: String
  let count: UInt64
}
