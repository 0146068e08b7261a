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
  ) throws(SallyportError) -> Engine {
    let listen = generation.composition.settings.listen
    guard let address = SocketAddress(literal: listen.address, port: listen.port) else {
      throw SallyportError(
        .configuration, error: "listen.address: \(listen.address) is not a valid address",
        hint: "write an IPv4 or IPv6 address, or :: for all addresses")
    }
    do throws(Engine.StartError) {
      return try serve(
        at: address, or: inherited.takePublic(), generation.composition.settings, tls, generation.responder,
        processors, log)
    } catch {
      throw SallyportError(
        .cannotBind, error: "cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or set listen.port to another port"
          : error.isForbidden
            ? "ports below 1024 need privileges: use systemd's sallyport.socket, or grant CAP_NET_BIND_SERVICE"
            : "check listen.address and listen.port")
    }
  }

  /// Uses the inherited sockets in `passed`, or opens one at `address` if there are none.
  private static func serve(
    at address: SocketAddress, or passed: [Int32], _ settings: GateSettings, _ tls: ServerTLS,
    _ responder: GateResponder, _ processors: ProcessorAllowance, _ log: EngineLog
  ) throws(Engine.StartError) -> Engine {
    let loops = settings.listen.loops ?? processors.count
    let (limits, proxies) = (settings.limits.engine, settings.listen.proxyProtocol)
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

/// A listener for operators or metrics: no TLS, one event loop. It does not accept connections yet.
enum SideListener {
  /// Uses the inherited socket if it listens at `address`, or opens a new one.
  static func start(
    _ listener: InheritedSockets.Listener, at address: SocketAddress, _ inherited: InheritedSockets,
    _ responder: AdminRouter, _ limits: EngineLimits, report: @escaping @Sendable (EngineEvent) -> Void
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
