internal import GateService
internal import Logging
internal import Transport
internal import TransportEngine

/// Writes engine events to the log and the metrics.
struct EngineLog: Sendable {
  let logger: Logger
  let metrics: GateMetrics

  func write(_ event: EngineEvent) {
    switch event {
    case .handshakeCompleted(let duration): metrics.handshakeCompleted(in: duration)
    case .handshakeFailed(let address, let reason, let commonName):
      metrics.handshakeFailed()
      var metadata: Logger.Metadata = ["client": "\(address.host)", "reason": "\(reason)"]
      if let commonName { metadata["common_name"] = "\(commonName)" }
      logger.info("TLS handshake failed", metadata: metadata)
    case .connectionUnused(let address):
      metrics.closedUnusedConnection()
      logger.debug("connection closed unused", metadata: ["client": "\(address.host)"])
    case .challengeAnswered(let address):
      logger.info("ACME challenge answered", metadata: ["client": "\(address.host)"])
    case .acceptPaused(let reason):
      metrics.acceptPaused()
      logger.error("accept paused", metadata: ["reason": "\(reason)"])
    case .connectionRefused(let refusal, let address, let detail):
      metrics.refusedConnection(refusal.rawValue)
      var metadata: Logger.Metadata = ["client": "\(address.host)", "code": "\(refusal.rawValue)"]
      if let detail { metadata["detail"] = "\(detail)" }
      logger.info("connection refused", metadata: metadata)
    }
  }
}
