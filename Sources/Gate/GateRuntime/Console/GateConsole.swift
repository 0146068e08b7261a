public import ByteCoding
public import ConsoleServing
internal import GateService

/// The console of a gate: its pages and acts over the admin server.
public struct GateConsole: ConsolePages {
  private let gate: ConsoleLink
  private let clock: WallClock

  /// - Parameters:
  ///   - gate: The way to the admin server.
  ///   - clock: The base of relative times.
  public init(_ gate: ConsoleLink, clock: WallClock = .system) { (self.gate, self.clock) = (gate, clock) }

  public var name: String { "sallyport" }

  public var sections: [ConsoleSection] {
    [
      .init("/", "Overview"), .init("/refusals", "Refusals"), .init("/keys", "Keys"), .init("/sessions", "Sessions"),
      .init("/upstreams", "Upstreams"), .init("/certificates", "Certificates"),
      .init("/configuration", "Configuration"),
    ]
  }

  public var acts: [ConsoleAct] { GateActs.all }

  public func page(
    at path: String, _ query: ConsoleForm, for viewer: ConsoleViewer
  ) async throws(ConsoleFault) -> ConsolePage? {
    let (now, gate) = (clock.now(), gate.asked(by: viewer))
    switch path {
    case "/": return try await OverviewPage.page(gate)
    case "/refusals": return try await RefusalsPage(query: query, now: now).page(gate)
    case "/keys": return try await KeysPage(query: query, now: now).page(gate)
    case "/sessions": return try await SessionsPage(query: query, now: now, viewer: viewer).page(gate)
    case "/upstreams": return try await UpstreamsPage.page(gate, viewer)
    case "/certificates": return try await CertificatesPage.page(gate, now)
    case "/configuration": return try await ConfigurationPage.page(gate, now)
    default:
      guard path.hasPrefix("/keys/") else { return nil }
      let (name, hasDecisions) = Self.parts(of: path.dropFirst("/keys/".count))
      guard let key = KeyName(name) else { return nil }
      if hasDecisions { return try await DecisionsPage(key: key, query: query, now: now).page(gate) }
      return try await KeyPage(key: key, now: now, viewer: viewer).page(gate)
    }
  }

  private static func parts(of path: Substring) -> (name: Substring, hasDecisions: Bool) {
    let ending = "/decisions"
    return path.hasSuffix(ending) ? (path.dropLast(ending.count), true) : (path, false)
  }

  public func perform(
    _ act: ConsoleAct, _ form: ConsoleForm, for viewer: ConsoleViewer
  ) async throws(ConsoleFault) {
    try await GateActs.perform(act, form, gate.asked(by: viewer))
  }
}
