internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Observability
internal import TransportEngine

/// Metrics of the gate's state, read on each scrape.
enum GateGauges {
  static func register(in registry: MetricsRegistry, for server: GateServer) {
    let started = Timestamp.now()
    registry.values("sallyport_build_info", "The running version.", labels: ["version"]) {
      [Sample(1, Version.text)]
    }
    registry.values("sallyport_start_time_seconds", "When the gate started.") { [Sample(Double(started.seconds))] }
    registerTraffic(in: registry, of: server.engine)
    registry.values("sallyport_store_up", "Whether the last calls to the store succeeded.") {
      [store = server.memory.store] in
      if case .healthy = store.health { [Sample(1)] } else { [Sample(0)] }
    }
    registry.values(
      "sallyport_certificate_expiry_timestamp_seconds",
      "When the served certificate from this file expires.", labels: ["file"]
    ) { [weak server] in await server?.certificateEnds ?? [] }
    ProcessGauges.register(in: registry)
  }

  private static func registerTraffic(in registry: MetricsRegistry, of engine: Engine) {
    registry.values("sallyport_connections_active", "Open client connections, in any phase.") {
      [Sample(Double(await engine.traffic().connections))]
    }
    registry.values(
      "sallyport_overloaded", "1 while new connections wait for longer than a second, or are not accepted."
    ) {
      [Sample(engine.overload == nil ? 0 : 1)]
    }
    registry.values("sallyport_sessions_active", "Open sessions.") { [Sample(Double(await engine.traffic().sessions))] }
    registry.values(
      "sallyport_session_bytes_total", "Relayed WebSocket bytes, including frame headers.", kind: .counter,
      labels: ["from"]
    ) {
      let traffic = await engine.traffic()
      return [
        Sample(Double(traffic.bytesFromClients), "client"), Sample(Double(traffic.bytesFromUpstreams), "upstream"),
      ]
    }
  }
}

extension GateServer {
  fileprivate var certificateEnds: [Sample] {
    generation.served.certificates.map { Sample(Double($0.certificate.notAfter.seconds), $0.name) }
  }
}
