internal import GateService
internal import Logging
internal import Preflight
internal import Settings
internal import TransportEngine

/// The listener for those who watch a gate: `/metrics`, `/livez` and `/readyz`, plain HTTP/1.1, without a token.
///
/// What it tells holds no key and no address. It has an engine of its own, as the admin server has.
enum MetricsServer {
  /// `nil` if `settings` are.
  static func start(
    _ settings: GateSettings.Metrics?, _ resources: [any AdminResource], _ inheritance: InheritedSockets, logger: Logger
  ) throws(SallyportError) -> Engine? {
    guard let settings else { return nil }
    guard let address = settings.socket else {
      throw SallyportError(
        .configuration, error: "metrics.listen: \(settings.address) is no address", hint: "write 127.0.0.1:9464")
    }
    var limits = EngineLimits()
    limits.maxBody = 0
    do throws(Engine.StartFault) {
      let engine = try SideListener.start(
        .metrics, at: address, inheritance, AdminRouter(resources, access: .anyone), limits,
        report: { event in
          // Without TLS there is nothing else to tell.
          guard case .acceptPaused(let reason) = event else { return }
          logger.error("no further metrics connections for a moment", metadata: ["reason": "\(reason)"])
        })
      logger.info("metrics listening", metadata: ["address": "\(engine.address)"])
      return engine
    } catch {
      throw SallyportError(
        .cannotBind, error: "metrics.listen: cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or give this gate a metrics.listen of its own"
          : "the address has to be one of this machine")
    }
  }
}
