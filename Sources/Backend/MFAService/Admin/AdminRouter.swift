internal import ByteCoding
internal import Foundation

/// What operators ask a running backend.
public struct BackendOperations: Sendable {
  let checks: @Sendable () async -> [ReadinessCheck]
  let status: @Sendable () async -> BackendStatus
  let metrics: @Sendable () async -> [UInt8]
  let reload: @Sendable () async -> ReloadOutcome
  let drain: @Sendable () -> Void

  /// - Parameters:
  ///   - checks: Returns the last known states. It queries nothing, since monitoring calls it often.
  ///   - metrics: Returns the metrics in the Prometheus text format, version 0.0.4.
  ///   - reload: Returns when the new configuration is in use or was refused.
  ///   - drain: Starts the shutdown and returns at once.
  public init(
    checks: @escaping @Sendable () async -> [ReadinessCheck], status: @escaping @Sendable () async -> BackendStatus,
    metrics: @escaping @Sendable () async -> [UInt8], reload: @escaping @Sendable () async -> ReloadOutcome,
    drain: @escaping @Sendable () -> Void
  ) {
    self.checks = checks
    self.status = status
    self.metrics = metrics
    self.reload = reload
    self.drain = drain
  }
}

/// Answers requests for health, metrics, status and the backend's process. No request needs an identity: the listener
/// decides who can connect.
public struct AdminRouter: Sendable {
  /// The operations of a listener.
  public enum Surface: Sendable, Hashable {
    /// Everything, for the Unix socket of the operators.
    case operators
    /// `/livez`, `/readyz` and `/metrics`, for monitoring over loopback.
    case monitoring
  }

  private let operations: BackendOperations
  private let surface: Surface
  private let accounts: AccountResource?

  /// - Parameter accounts: The accounts, only for `.operators`.
  public init(_ operations: BackendOperations, surface: Surface, accounts: AccountResource? = nil) {
    self.operations = operations
    self.surface = surface
    self.accounts = surface == .operators ? accounts : nil
  }

  private static let methods: [Surface: KeyValuePairs<String, String>] = [
    .operators: [
      "/livez": "GET", "/readyz": "GET", "/metrics": "GET", "/status": "GET", "/v1/status": "GET",
      "/v1/reload": "POST", "/v1/drain": "POST",
    ],
    .monitoring: ["/livez": "GET", "/readyz": "GET", "/metrics": "GET"],
  ]

  /// Answers a request. HEAD is answered like GET; the server leaves out the body.
  ///
  /// - Parameters:
  ///   - accept: The value of `Accept`.
  ///   - peer: The client of the Unix socket; `nil` for other listeners.
  func answer(
    _ method: String, _ target: String, accept: String?, from peer: AdminPeer? = nil
  ) async -> AdminAnswer {
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let path = String(parts.first ?? "")
    let ofAccounts = accounts == nil ? nil : AccountResource.methods[path]
    guard let known = ofAccounts ?? Self.methods[surface]?.first(where: { $0.key == path })?.value else {
      return .refusal(404, "not_found", "no such path: \(path)")
    }
    guard method == known || (method == "HEAD" && known == "GET") else {
      var answer = AdminAnswer.refusal(405, "method_not_allowed", "\(path) needs \(known)")
      answer.fields.append(("Allow", known == "GET" ? "GET, HEAD" : known))
      return answer
    }
    if ofAccounts != nil, let accounts {
      return await accounts.answer(path, parts.count == 2 ? parts[1] : "", from: peer)
    }
    let wantsJSON = accept?.lowercased().contains("application/json") == true
    let query = parts.count == 2 ? parts[1].split(separator: "&") : []
    let isVerbose = query.contains { $0 == "verbose" || $0 == "verbose=" }
    return switch path {
    case "/livez": wantsJSON ? .json(["live": true]) : .text("ok\n")
    case "/readyz": await readiness(isVerbose: isVerbose, inJSON: wantsJSON, without: Self.excluded(in: query))
    case "/metrics":
      AdminAnswer(200, type: "text/plain; version=0.0.4; charset=utf-8", body: await operations.metrics())
    case "/status": .text(await operations.status().text + "\n")
    case "/v1/status": .json(await operations.status())
    case "/v1/reload": await reload()
    default: drain()
    }
  }

  private struct Readiness: Encodable {
    let ready: Bool
    let checks: [ReadinessCheck]?
    /// About names to exclude that no check has.
    let warning: String?
  }

  /// The checks that a query leaves out. A value that is not percent-encoded UTF-8 names no check.
  private static func excluded(in query: [Substring]) -> ExcludedChecks {
    let values = query.filter { $0.hasPrefix("exclude=") }.map { $0.dropFirst("exclude=".count) }
    return ExcludedChecks(values.map { $0.removingPercentEncoding ?? String($0) })
  }

  private func readiness(isVerbose: Bool, inJSON: Bool, without excluded: ExcludedChecks) async -> AdminAnswer {
    let all = await operations.checks()
    let checks = all.map {
      excluded.contains($0.name) ? ReadinessCheck($0.name, ready: true, "excluded: \($0.detail)") : $0
    }
    let warning = excluded.warning(known: all.map(\.name))
    let isReady = checks.allSatisfy(\.ready)
    let status = isReady ? 200 : 503
    var answer: AdminAnswer
    if inJSON {
      answer = .json(Readiness(ready: isReady, checks: isVerbose ? checks : nil, warning: warning), status: status)
    } else {
      let lines = isVerbose ? checks.map { "\($0.ready ? "[+]" : "[-]") \($0.name): \($0.detail)\n" } : []
      let note = warning.map { "warn: \($0)\n" } ?? ""
      answer = .text(lines.joined() + note + (isReady ? "ready\n" : "not ready\n"), status: status)
    }
    if !isReady { answer.fields.append(("Retry-After", "1")) }
    return answer
  }

  private func reload() async -> AdminAnswer {
    switch await operations.reload() {
    case .done(let settings): return .json(ReloadReply(reloaded: true, needsRestart: settings))
    case .refused(let faults, let hint):
      return .refusal(
        409, "configuration_refused", faults.joined(separator: "\n"),
        hint: hint ?? "correct the file; the old configuration stays in use")
    }
  }

  private func drain() -> AdminAnswer {
    operations.drain()
    return .json(DrainReply(draining: true), status: 202)
  }
}

/// One answer of the admin listener.
struct AdminAnswer: Sendable {
  let status: Int
  let type: String
  let body: [UInt8]
  var fields: [(String, String)] = []

  init(_ status: Int, type: String, body: [UInt8]) {
    self.status = status
    self.type = type
    self.body = body
  }

  static func text(_ text: String, status: Int = 200) -> Self {
    AdminAnswer(status, type: "text/plain; charset=utf-8", body: Array(text.utf8))
  }

  static func json(_ value: some Encodable, status: Int = 200) -> Self {
    AdminAnswer(status, type: "application/json", body: Array((JSONText.encoding(value) + "\n").utf8))
  }

  static func refusal(_ status: Int, _ code: String, _ error: String, hint: String? = nil) -> Self {
    json(AdminErrorBody(error: error, code: code, hint: hint), status: status)
  }
}
