internal import GateService
internal import Locking
internal import Logging
internal import Observability
internal import Settings
internal import Transport
internal import TransportEngine

/// Asks the servers of routes with several for their health, each at its interval, on threads of its own.
struct UpstreamChecks: Sendable {
  /// For one question, from connecting to the status of the answer. Its body does not count.
  private static let patience = Duration.seconds(3)

  private struct Question: Sendable {
    let route: String
    let server: Upstream
    let place: String
    let path: String
    let host: String
    let interval: Duration

    /// The authorities of a `wss://` server.
    var tls: ClientTLS? {
      get throws(ServerTLS.SetupError) {
        guard case .secureWebSocket(_, _, let tls) = server else { return nil }
        return try ClientTLS(for: tls)
      }
    }
  }

  private let questions: [Question]
  private let health: UpstreamHealth
  private let logger: Logger
  /// Reading authorities takes milliseconds, which revocations and probes do not wait for.
  private let worker = WorkerExecutor(threads: 1)

  /// - Returns: `nil` if no route has a health check.
  init?(_ routes: [GateSettings.Route], health: UpstreamHealth, logger: Logger) {
    questions = routes.flatMap { route in
      guard let check = route.health else { return [Question]() }
      return route.upstreams.map { server in
        let (place, authority) = (server.transport.text, server.authority)
        return Question(
          route: route.path, server: server.transport, place: place, path: check.path, host: route.host ?? authority,
          interval: check.interval)
      }
    }
    guard !questions.isEmpty else { return nil }
    self.health = health
    self.logger = logger
  }

  /// Asks until the task is cancelled.
  func run() async {
    let engine: ClientEngine
    do throws(ClientError) { engine = try ClientEngine() } catch {
      logger.error("upstreams not checked", metadata: ["reason": "\(error)"])
      return
    }
    await withTaskGroup(of: Void.self) { group in
      for question in questions {
        group.addTask(executorPreference: worker) { await keepAsking(question, by: engine) }
      }
    }
  }

  private func keepAsking(_ question: Question, by engine: ClientEngine) async {
    // Read once: changed files count after a reload, as for sessions.
    let tls = Result { () throws(ServerTLS.SetupError) in try question.tls }
    while !Task.isCancelled {
      let fault =
        switch tls {
        case .success(let tls): await fault(question, by: engine, tls)
        case .failure(let error): error.description
        }
      if Task.isCancelled { return }
      note(fault, question)
      await Rest.about(question.interval)
    }
  }

  /// Returns why the server is not healthy; `nil` if it is.
  private func fault(_ question: Question, by engine: ClientEngine, _ tls: ClientTLS?) async -> String? {
    let fields = HeaderFields([
      .init(name: "Host", value: question.host), .init(name: "User-Agent", value: "sallyport/\(Version.text)"),
      .init(name: "Connection", value: "close"),
    ])
    do throws(ClientError) {
      let answer = try await engine.ask(
        question.server, "GET", question.path, fields: fields, tls: tls, within: Self.patience)
      return (200..<400).contains(answer.status) ? nil : "it answered with status \(answer.status)"
    } catch {
      return error.description
    }
  }

  private func note(_ fault: String?, _ question: Question) {
    guard let isUnhealthy = health.checked(question.server, on: question.route, isHealthy: fault == nil) else { return }
    let metadata: Logger.Metadata = ["route": "\(question.route)", "upstream": "\(question.place)"]
    if isUnhealthy {
      logger.warning(
        "upstream fails its health check: it gets no new sessions",
        metadata: metadata.merging(["reason": "\(fault ?? "")"]) { $1 })
    } else {
      logger.notice("upstream passes its health check again", metadata: metadata)
    }
  }
}

extension GateSettings.Upstream {
  /// The value of `Host` that names the server itself.
  fileprivate var authority: String {
    switch self {
    case .webSocket(let host, let port): Self.authority(host, port, standard: 80)
    case .secureWebSocket(let host, let port, _): Self.authority(host, port, standard: 443)
    case .unix, .tcp: "localhost"
    }
  }

  private static func authority(_ host: String, _ port: UInt16, standard: UInt16) -> String {
    let host = host.contains(":") ? "[\(host)]" : host
    return port == standard ? host : "\(host):\(port)"
  }
}
