internal import Commands
internal import GateService
internal import Logging
internal import Settings
internal import TransportEngine

/// The listener for monitoring: `/metrics`, `/livez` and `/readyz` over plain HTTP/1.1, without a token.
///
/// Its answers contain no keys and no client addresses. It has its own engine, like the admin server.
enum MetricsServer {
  /// Starts the metrics server. Returns `nil` if `settings` is `nil`.
  static func start(
    _ settings: GateSettings.ListeningAddress?, _ resources: [any AdminResource], _ inherited: InheritedSockets,
    logger: Logger
  ) throws(Failure) -> Engine? {
    guard let settings else { return nil }
    guard let address = settings.socket else {
      throw Failure(
        .configuration, "metrics.listen: \(settings.address) is not a valid address",
        hint: "write 127.0.0.1:9464")
    }
    var limits = EngineLimits()
    limits.maxBody = 0
    limits.connectionsPerLoop = 1024
    do throws(Engine.StartError) {
      let engine = try SideListener.start(
        .metrics, at: address, inherited, AdminRouter(resources, access: .anyone), limits,
        report: { event in
          // The other events concern TLS and PROXY headers.
          guard case .acceptPaused(let reason) = event else { return }
          logger.error("metrics accept paused", metadata: ["reason": "\(reason)"])
        })
      logger.info("metrics server listening", metadata: ["address": "\(engine.address)"])
      return engine
    } catch {
      throw Failure(
        .cannotBind, "metrics.listen: cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or give this gate another metrics.listen"
          : "the address must belong to this machine")
    }
  }
}
