public import AttestGate
internal import ByteCoding
internal import Transport

/// The state of one dependency of the gate.
public struct ReadinessCheck: Sendable {
  /// The last known state, with a text for people.
  public enum Outcome: Sendable, Hashable {
    case ready(String)
    /// Ready, but an operator should act.
    case warning(String)
    case unready(String)
  }

  public let name: String
  private let applies: @Sendable () -> Bool
  private let outcome: @Sendable () -> Outcome

  /// - Parameters:
  ///   - applies: Whether the check is reported: not if the settings turn its subject off.
  ///   - outcome: Returns the last known state with a text for people. It must not query the dependency, since
  ///     monitoring calls it often.
  public init(
    _ name: String, applies: @escaping @Sendable () -> Bool = { true }, outcome: @escaping @Sendable () -> Outcome
  ) {
    self.name = name
    self.applies = applies
    self.outcome = outcome
  }

  /// The last known states of the checks that apply.
  public static func states(of checks: [ReadinessCheck]) -> [GateStatus.Check] {
    checks.filter { $0.applies() }.map(\.state)
  }

  /// The last known state.
  public var state: GateStatus.Check {
    switch outcome() {
    case .ready(let detail): GateStatus.Check(name: name, ready: true, detail: detail)
    case .warning(let detail): GateStatus.Check(name: name, ready: true, detail: detail, warning: true)
    case .unready(let detail): GateStatus.Check(name: name, ready: false, detail: detail)
    }
  }

  /// Checks whether the last store calls succeeded. The gate calls the store at least every few seconds.
  public static func store(_ store: any GateStore) -> ReadinessCheck {
    ReadinessCheck("store") {
      switch store.health {
      case .untried: .unready("not opened yet")
      case .healthy: .ready("ok")
      case .failing(let since, let error): .unready("failing since \(since): \(error.step)")
      }
    }
  }
}

/// `/livez` and `/readyz`, for service managers and load balancers.
public struct HealthResource: AdminResource {
  private let checks: [ReadinessCheck]
  private let upstreams: UpstreamHealth?

  /// - Parameter upstreams: Adds a line for each route's upstream, which does not change the readiness.
  public init(_ checks: [ReadinessCheck], upstreams: UpstreamHealth? = nil) {
    self.checks = checks
    self.upstreams = upstreams
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/livez", "Reports that the process is alive.",
        answers: AdminAnswers(200, schema: .liveness, types: ["text/plain", "application/json"])
      ) { request throws(AdminError) in
        request.wantsJSON ? .json(["live": true]) : .text("ok\n")
      },
      AdminOperation(
        "GET", "/readyz", "Reports whether new sessions can be admitted; upstreams only cause warnings.",
        parameters: [
          AdminParameter("verbose", schema: ["type": "boolean"]),
          AdminParameter("exclude", schema: ["type": "array", "items": ["type": "string"]], isRepeatable: true),
        ],
        answers: AdminAnswers(200, 503, schema: .readiness, types: ["text/plain", "application/json"])
      ) { request throws(AdminError) in
        readiness(
          isVerbose: try request.flag("verbose"), inJSON: request.wantsJSON,
          without: ExcludedChecks(request.repeated("exclude")))
      },
    ]
  }

  private struct Report: Encodable {
    let ready: Bool
    var checks: [GateStatus.Check]?
    /// About names to exclude that no check has.
    var warning: String?
  }

  private func readiness(isVerbose: Bool, inJSON: Bool, without excluded: ExcludedChecks) -> Response {
    let all = ReadinessCheck.states(of: self.checks) + (upstreams?.checks ?? [])
    let checks = all.map { excluded.contains($0.name) ? $0.excluded : $0 }
    let warning = excluded.warning(known: all.map(\.name))
    let isReady = checks.allSatisfy(\.ready)
    let status = isReady ? 200 : 503
    if inJSON {
      let report = Report(ready: isReady, checks: isVerbose ? checks : nil, warning: warning)
      return .text(JSONText.encoding(report) + "\n", status: status, type: "application/json")
    }
    let lines = isVerbose ? checks.map { "\($0.ready ? "[+]" : "[-]") \($0.name): \($0.detail)\n" } : []
    let note = warning.map { "warn: \($0)\n" } ?? ""
    return .text(lines.joined() + note + (isReady ? "ready\n" : "not ready\n"), status: status)
  }
}

extension GateStatus.Check {
  /// The check, if it does not count. It warns if it would not be ready.
  fileprivate var excluded: Self {
    Self(name: name, ready: true, detail: "excluded: \(detail)", warning: ready ? warning : true)
  }
}
