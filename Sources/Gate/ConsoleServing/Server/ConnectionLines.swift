internal import Locking
internal import Logging
internal import Transport
internal import TransportEngine

/// The log lines about connections, which clients without a sign-in can cause. At most 60 are written in a minute, so that
/// they do not hide those about people; the next one after it has the number of the others.
final class ConnectionLines: Sendable {
  private struct Minute {
    var start: ContinuousClock.Instant
    var written = 0
    var left = 0
  }

  static let mostInMinute = 60
  private let minute: LockedValue<Minute>
  private let logger: Logger
  private let now: @Sendable () -> ContinuousClock.Instant

  init(_ logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    (self.logger, self.now) = (logger, now)
    minute = LockedValue(Minute(start: now()))
  }

  /// Called on the event loop.
  func write(_ event: EngineEvent) {
    switch event {
    case .handshakeCompleted, .connectionUnused, .challengeAnswered: break
    case .acceptPaused(let reason): logger.error("accept paused", metadata: ["reason": "\(reason)"])
    case .handshakeFailed(let address, let reason, let commonName):
      var metadata: Logger.Metadata = ["client": "\(address.host)", "reason": "\(reason)"]
      if let commonName { metadata["common_name"] = "\(commonName)" }
      write("TLS handshake failed", metadata)
    case .connectionRefused(let refusal, let address, let detail):
      var metadata: Logger.Metadata = ["client": "\(address.host)", "code": "\(refusal.rawValue)"]
      if let detail { metadata["detail"] = "\(detail)" }
      write("connection refused", metadata)
    }
  }

  private func write(_ message: Logger.Message, _ metadata: Logger.Metadata) {
    let now = self.now()
    let (isWritten, left) = minute.withLock { minute in
      var left = 0
      if now - minute.start >= .seconds(60) {
        left = minute.left
        minute = Minute(start: now)
      }
      minute.written += 1
      guard minute.written > Self.mostInMinute else { return (true, left) }
      minute.left += 1
      return (false, left)
    }
    if left > 0 { logger.info("further lines about connections left out", metadata: ["number": "\(left)"]) }
    if isWritten { logger.info(message, metadata: metadata) }
  }
}
