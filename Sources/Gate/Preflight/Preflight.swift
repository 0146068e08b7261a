public import AttestGate
public import ByteCoding
public import Settings
internal import Transport
internal import TransportEngine

/// Probes everything that a gate with these settings needs: files, store, upstreams and listening addresses.
///
/// The probes change nothing: they create no files, run no migrations, and release each address at once. The results
/// describe this moment; the gate's start may still fail later.
public struct Preflight: Sendable {
  private let settings: GateSettings
  private let store: (any GateStore)?
  private let instant: Timestamp

  /// How long an upstream may take to accept a connection, including TLS.
  public static let patience = Duration.seconds(2)

  /// - Parameters:
  /// - store: the store of the settings, not opened; `nil` skips the store.
  /// - instant: the time at which certificates must be valid.
  public init(_ settings: GateSettings, store: (any GateStore)?, at instant: Timestamp) {
    self.settings = settings
    self.store = store
    self.instant = instant
  }

  /// Runs all probes. Results are in the order of the keys.
  public func run() async -> [ProbeResult] {
    async let upstreams = UpstreamProbe(settings: settings).run()
    async let stored = probeStore()
    async let authority = ACMEProbe(settings: settings).run()
    async let android = AndroidProbe(settings: settings, instant: instant).run()
    let listener = ListeningProbe(settings: settings).run()
    let files = FileProbe(settings: settings, instant: instant).run()
    return await listener + files + summaries + authority + android + upstreams + stored
  }

  /// What the listener and the tokens offer, which cannot fail.
  private var summaries: [ProbeResult] {
    var report = ProbeReport(settings)
    report.pass("tls", "key exchange: \(KeyExchange.summary)")
    if let tokens = settings.tokens {
      report.pass(
        "tokens",
        "tokens for \(tokens.audiences.joined(separator: ", ")), valid for \(tokens.lifetime.components.seconds) s: "
          + "so long a revoked key keeps its last one")
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

/// Checks whether the upstreams accept connections.
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
    let faults = await withTaskGroup(of: (Int, ClientError?).self) { group in
      for (index, route) in settings.routes.enumerated() {
        group.addTask { (index, await Self.fault(of: route.upstream, from: client)) }
      }
      return await group.reduce(into: [Int: ClientError]()) { $0[$1.0] = $1.1 }
    }
    for index in settings.routes.indices {
      let key = "routes[\(index)].upstream"
      let name = settings.effective.first { $0.key == key }?.text ?? "the upstream"
      if let fault = faults[index] {
        report.fail(key, "\(name) cannot be reached: \(fault)", hint: "start the upstream, or correct its URL")
      } else {
        report.pass(key, "\(name) accepts connections")
      }
    }
    return report.results
  }

  private static func fault(of upstream: GateSettings.Upstream, from client: ClientEngine) async -> ClientError? {
    do throws(ClientError) {
      try await client.tryConnecting(to: upstream.transport, within: Preflight.patience)
      return nil
    } catch {
      return error
    }
  }
}

extension GateSettings.Upstream {
  fileprivate var transport: Upstream {
    switch self {
    case .webSocket(let host, let port): .webSocket(host: host, port: port)
    case .secureWebSocket(let host, let port, let caFile, let serverName):
      .secureWebSocket(host: host, port: port, tls: UpstreamTLS(caFile: caFile, serverName: serverName))
    case .unix(let path): .unix(path: path)
    case .tcp(let host, let port): .tcp(host: host, port: port)
    }
  }
}
