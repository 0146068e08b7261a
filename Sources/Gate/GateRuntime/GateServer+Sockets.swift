internal import Commands
internal import ConfigurationEngine
internal import GateService
internal import Glibc
internal import Settings
internal import Transport
internal import TransportEngine

extension GateServer {
  /// Opens the public listener. It does not accept connections yet.
  static func start(
    _ generation: Generation, _ tls: ServerTLS, _ inherited: InheritedSockets, _ processors: ProcessorAllowance,
    _ log: EngineLog
  ) throws(Failure) -> Engine {
    let listen = generation.composition.settings.listen
    guard let address = SocketAddress(literal: listen.address, port: listen.port) else {
      throw Failure(
        .configuration, "listen.address: \(listen.address) is not a valid address",
        hint: "write an IPv4 or IPv6 address, or :: for all addresses")
    }
    if let unit = inherited.missingUnit { throw missingSocket(of: unit) }
    let passed = inherited.takePublic()
    if inherited.parent == nil { try judge(passed, for: address, generation.composition.settings) }
    do throws(Engine.StartError) {
      return try serve(
        at: address, or: passed, generation.composition.settings, tls, generation.responder,
        processors, log)
    } catch {
      throw Failure(
        .cannotBind, "cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or set listen.port to another port"
          : error.isForbidden
            ? "ports below 1024 need privileges: use systemd's sallyport.socket, or grant CAP_NET_BIND_SERVICE"
            : "check listen.address and listen.port")
    }
  }

  /// The error of a service whose socket unit has failed or is masked. Without it, the gate would open a socket at
  /// `listen` and report that it serves, while clients call the address of the socket unit.
  private static func missingSocket(of unit: String) -> Failure {
    let service = unit.hasSuffix(".socket") ? String(unit.dropLast(".socket".count)) : unit
    return Failure(
      .configuration, "\(unit) has passed no socket",
      hint: "systemctl stop \(service), then systemctl start \(unit) \(service); "
        + "for a gate without it, set Environment=SOCKET_UNIT= with systemctl edit \(service)")
  }

  /// Refuses sockets from systemd that listen elsewhere than the configuration says. A key that has its default says
  /// nothing.
  private static func judge(
    _ passed: [Int32], for address: SocketAddress, _ settings: GateSettings
  ) throws(Failure) {
    let actual = passed.compactMap { Engine.address(ofListening: $0) }
    let listen = settings.listen
    guard let first = actual.first else { return }
    if settings.isSet("listen.port"), listen.port != 0, !actual.contains(where: { $0.port == listen.port }) {
      throw Failure(
        .configuration, "listen.port is \(listen.port), but systemd passes a socket at \(first)",
        hint: "run systemctl edit sallyport.socket and write [Socket], ListenStream= and ListenStream=\(listen.port); "
          + "or remove listen.port")
    }
    if settings.isSet("listen.address"), !actual.contains(where: { $0.host == address.host }) {
      throw Failure(
        .configuration, "listen.address is \(listen.address), but systemd passes a socket at \(first)",
        hint: "set ListenStream= in sallyport.socket to this address and the port; or remove listen.address")
    }
  }

  /// Uses the inherited sockets in `passed`, or opens one at `address` if there are none.
  private static func serve(
    at address: SocketAddress, or passed: [Int32], _ settings: GateSettings, _ tls: ServerTLS,
    _ responder: GateResponder, _ processors: ProcessorAllowance, _ log: EngineLog
  ) throws(Engine.StartError) -> Engine {
    let loops = settings.listen.loops ?? processors.count
    let (limits, proxies) = (settings.engineLimits, settings.listen.proxyProtocol)
    guard passed.isEmpty else {
      return try Engine(
        inheriting: passed, loops: loops, tls: tls, responder: responder, limits: limits, proxies: proxies,
        accepts: false, report: { log.write($0) })
    }
    return try Engine(
      listeningAt: address, loops: loops, tls: tls, responder: responder, limits: limits, proxies: proxies,
      accepts: false, report: { log.write($0) })
  }
}

extension GateSettings {
  /// Whether an operator has set a key of the configuration, so that it does not have its default.
  func isSet(_ key: String) -> Bool {
    effective.contains { $0.key == key && $0.origin != .standard }
  }
}

/// The listeners besides that for clients; `nil` where the settings have none.
struct SideListeners: Sendable {
  var admin: Engine?
  var metrics: Engine?
  /// For HTTP-01.
  var challenges: ChallengeServer?

  var engines: [Engine] { named.map(\.engine) }

  /// The engines, as a new process of an upgrade finds their sockets.
  var named: [(listener: InheritedSockets.Listener, engine: Engine)] {
    [(.admin, admin), (.metrics, metrics), (.challenges, challenges?.engine)].compactMap { listener, engine in
      engine.map { (listener, $0) }
    }
  }
}

/// A listener for operators, metrics or challenges: no TLS, one event loop. It does not accept connections yet.
enum SideListener {
  /// Uses the inherited socket if it listens at `address`, or opens a new one.
  static func start(
    _ listener: InheritedSockets.Listener, at address: SocketAddress, _ inherited: InheritedSockets,
    _ responder: any RequestResponder, _ limits: EngineLimits, report: @escaping @Sendable (EngineEvent) -> Void
  ) throws(Engine.StartError) -> Engine {
    let passed = inherited.take(listener, at: address)
    guard passed.isEmpty else {
      return try Engine(
        inheriting: passed, ownsFile: true, loops: 1, tls: nil, responder: responder, limits: limits, accepts: false,
        report: report)
    }
    return try Engine(
      listeningAt: address, loops: 1, tls: nil, responder: responder, limits: limits, accepts: false, report: report)
  }
}
