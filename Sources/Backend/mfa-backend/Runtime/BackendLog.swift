internal import ConfigurationEngine
internal import Locking
internal import Logging
internal import Observability

/// The log of the backend: JSON lines on standard error, with a level that a reload changes for every logger.
struct BackendLog: Sendable {
  private let sink = LineSink(descriptor: 2)
  private let level = LockedValue(Logger.Level.info)

  /// A logger that follows `setLevel`, also in its copies.
  func logger() -> Logger {
    Logger(label: "mfa-backend") { [sink, level] label in
      LevelledHandler(handler: JSONLineHandler(label: label, sink: sink), level: level)
    }
  }

  func setLevel(_ text: String) {
    guard let new = Logger.Level(rawValue: text) else { return }
    level.withLock { $0 = new }
  }

  func flush() { sink.flush() }

  /// Logs what an operator should know about the configuration, at a start and after a reload.
  static func announce(_ warnings: [Warning], to logger: Logger) {
    for warning in warnings { logger.warning("configuration warning", metadata: ["reason": "\(warning)"]) }
  }
}

private struct LevelledHandler: LogHandler {
  var handler: JSONLineHandler
  let level: LockedValue<Logger.Level>

  /// The common level. A logger has none of its own.
  var logLevel: Logger.Level {
    get { level.withLock { $0 } }
    set {}
  }

  var metadata: Logger.Metadata {
    get { handler.metadata }
    set { handler.metadata = newValue }
  }

  var metadataProvider: Logger.MetadataProvider? {
    get { handler.metadataProvider }
    set { handler.metadataProvider = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { handler[metadataKey: key] }
    set { handler[metadataKey: key] = newValue }
  }

  func log(event: LogEvent) { handler.log(event: event) }
}
