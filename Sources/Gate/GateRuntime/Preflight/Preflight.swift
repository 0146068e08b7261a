public import AttestGate
public import ByteCoding
public import ConfigurationEngine
public import Wire
public import Settings
public import Transport
internal import TransportEngine

/// Probes everything that a gate with these settings needs: files, store, upstreams and listening addresses.
///
/// The probes change nothing: they create no files, run no migrations, and release each address at once. The results
/// describe this moment; the gate's start may still fail later.
public struct Preflight: Sendable {
  private let settings: GateSettings
  private let store: (any GateStore)?
  private let instant: Timestamp
  private let proxies: ProxyVariables

  /// How long an upstream may take to accept a connection, including TLS.
  public static let patience = Duration.seconds(2)

  /// - Parameters:
  /// - store: the store of the settings, not opened; `nil` skips the store.
  /// - instant: the time at which certificates must be valid.
  /// - proxies: choose the proxies of the gate's own requests.
  public init(
    _ settings: GateSettings, store: (any GateStore)?, at instant: Timestamp, proxies: ProxyVariables = .ofProcess
  ) {
    self.proxies = proxies
    self.settings = settings
    self.store = store
    self.instant = instant
  }

  /// Runs all probes. Results are in the order of the keys.
  public func run() async -> [ProbeResult] {
    async let upstreams = UpstreamProbe(settings: settings).run()
    async let stored = probeStore()
    async let authority = ACMEProbe(settings: settings, proxies: proxies).run()
    async let android = AndroidProbe(settings: settings, instant: instant, proxies: proxies).run()
    let listener = ListeningProbe(settings: settings).run()
    let files = FileProbe(settings: settings, instant: instant).run()
    let network = ProxyProbe(settings: settings, proxies: proxies).run()
    let risk = RiskProbe(settings: settings).run()
    let webhooks = WebhookProbe(settings: settings).run()
    let console = ConsoleProbe(settings: settings).run()
    return await listener + files + console + summaries + network + webhooks + authority + android + risk + upstreams
      + stored
  }

  /// What the listener and the tokens offer, which cannot fail.
  private var summaries: [ProbeResult] {
    var report = ProbeReport(settings)
    report.pass("tls", "key exchange: \(KeyExchange.summary)")
    guard let tokens = settings.tokens else { return report.results }
    let loss = "so long a revoked key keeps its last one"
    if !tokens.audiences.isEmpty {
      report.pass(
        "tokens",
        "tokens for \(tokens.audiences.joined(separator: ", ")), valid for \(tokens.lifetime.components.seconds) s: \(loss)"
      )
    }
    for client in tokens.clients {
      report.pass(
        "tokens.clients",
        "attestations for the client \(client.id), valid for \(client.lifetime.components.seconds) s: \(loss)")
    }
    return report.results
  }

  /// Probes only the upstreams: one result for each route, within `patience`.
  public func upstreams() async -> [ProbeResult] { await UpstreamProbe(settings: settings).run() }

  private func probeStore() async -> [ProbeResult] {
    guard let store else { return [] }
    return await StoreProbe(settings: settings, store: store).run()
  }
}

/// Checks whether the upstreams accept connections, and sockets if they are WebSocket servers. The handshake carries no
/// identity, and a socket that opens is closed at once.
struct UpstreamProbe {
  let settings: GateSettings

  func run() async -> [ProbeResult] {
    var report = ProbeReport(settings)
    let client: ClientEngine
    do throws(ClientError) {
      client = try ClientEngine()
    } catch {
      report.fail("routes", "cannot probe the upstreams: \(error)")
      return report.results
    }
    let verdicts = await withTaskGroup(of: ([Int], Verdict).self) { group in
      for (index, route) in settings.routes.enumerated() {
        for (server, upstream) in route.upstreams.enumerated() {
          group.addTask { ([index, server], await Self.verdict(on: upstream, of: route, from: client)) }
        }
      }
      return await group.reduce(into: [[Int]: Verdict]()) { $0[$1.0] = $1.1 }
    }
    let servers = settings.routes.enumerated().flatMap { index, route in route.upstreams.indices.map { [index, $0] } }
    for place in servers {
      let index = place[0]
      let key = "routes[\(index)].upstream"
      let names = settings.effective.first { $0.key == key }?.text?.split(separator: ",") ?? []
      let name = names.indices.contains(place[1]) ? String(names[place[1]].trimmingPrefix(" ")) : "the upstream"
      switch verdicts[place] {
      case .unreachable(let fault):
        report.fail(key, "\(name) cannot be reached: \(fault)", hint: "start the upstream, or correct its URL")
      case .unusable(let fault):
        report.fail(
          "routes[\(index)].upstream_tls", "\(fault)",
          hint: "ca_file is a PEM file of CA certificates; cert_file and key_file belong together")
      case .refused(let status) where [401, 403].contains(status):
        report.pass(key, "\(name) accepts connections, and refuses a socket without an identity with \(status)")
      case .refused(let status):
        report.warn(
          key, "\(name) answers a WebSocket handshake for \(settings.routes[index].path) with \(status) instead of 101",
          hint: Self.advice)
      case .other(let fault):
        report.warn(key, "\(name) does not answer a WebSocket handshake: \(fault)", hint: Self.advice)
      case .open, nil: report.pass(key, "\(name) accepts connections")
      }
    }
    return report.results
  }

  private static let advice =
    "start a WebSocket server there, or correct host, port and path; a route for ordinary requests needs forward: all"

  /// What an upstream did.
  private enum Verdict: Sendable {
    case open
    case unreachable(ClientError)
    /// The files for TLS cannot be used.
    case unusable(ServerTLS.SetupError)
    /// It answered with this status instead of 101.
    case refused(Int)
    /// It did not answer as an HTTP server.
    case other(ClientError)
  }

  private static func verdict(
    on upstream: GateSettings.Upstream, of route: GateSettings.Route, from client: ClientEngine
  ) async -> Verdict {
    if case .secureWebSocket(_, _, let tls) = upstream {
      do throws(ServerTLS.SetupError) { _ = try ClientTLS(for: tls.transport) } catch { return .unusable(error) }
    }
    do throws(ClientError) {
      try await client.tryConnecting(to: upstream.transport, within: Preflight.patience)
    } catch {
      return .unreachable(error)
    }
    // Of an upstream for ordinary requests only the connection is certain.
    guard route.forward == .upgrades else { return .open }
    do throws(ClientError) {
      guard let connection = try await connection(to: upstream, from: client) else { return .open }
      let socket = try await connection.upgrade(
        route.rewrite ?? route.path, host: route.host ?? upstream.host, timeout: Preflight.patience)
      await socket.close(patience: .milliseconds(200))
      return .open
    } catch {
      guard case .refused(let response) = error else { return .other(error) }
      return .refused(response.status)
    }
  }

  /// Connects to a WebSocket server; `nil` for a TCP service.
  private static func connection(
    to upstream: GateSettings.Upstream, from client: ClientEngine
  ) async throws(ClientError) -> ClientConnection? {
    switch upstream {
    case .webSocket(let host, let port):
      return try await client.connect(host: host, port: port, tls: nil, timeout: Preflight.patience)
    case .secureWebSocket(let host, let port, let tls):
      let context: ClientTLS
      do throws(ServerTLS.SetupError) {
        context = try ClientTLS(for: tls.transport)
      } catch {
        throw .untrusted(error.description)
      }
      return try await client.connect(
        host: host, port: port, tls: context, verifying: tls.serverName, timeout: Preflight.patience)
    case .unix(let path): return try await client.connect(socket: path)
    case .tcp: return nil
    }
  }
}

extension GateSettings.Upstream {
  /// The value of `Host`.
  fileprivate var host: String {
    switch self {
    case .webSocket(let host, let port), .tcp(let host, let port), .secureWebSocket(let host, let port, _):
      "\(host.contains(":") ? "[\(host)]" : host):\(port)"
    case .unix: "localhost"
    }
  }

  /// The upstream as the engine connects to it.
  public var transport: Upstream {
    switch self {
    case .webSocket(let host, let port): .webSocket(host: host, port: port)
    case .secureWebSocket(let host, let port, let tls): .secureWebSocket(host: host, port: port, tls: tls.transport)
    case .unix(let path): .unix(path: path)
    case .tcp(let host, let port): .tcp(host: host, port: port)
    }
  }
}

extension GateSettings.UpstreamTLS {
  fileprivate var transport: UpstreamTLS {
    UpstreamTLS(
      caFile: caFile, serverName: serverName,
      identity: identity.map { .init(certificateFile: $0.certificateFile, keyFile: $0.keyFile) })
  }
}
