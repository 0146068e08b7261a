public import Logging

/// Writes lines with fields to a logger.
///
/// It asks only once what handler the logger has. One of this module that adds nothing of its own gets the fields without
/// swift-log's event and its dictionary, which would cost as much as the line.
public final class FieldLogger: Sendable {
  private let logger: Logger
  private let handler: JSONLineHandler?

  public init(_ logger: Logger) {
    self.logger = logger
    handler = (logger.handler as? JSONLineHandler).flatMap { $0.addsNothing ? $0 : nil }
  }

  /// Whether lines of `level` are written.
  public func isEnabled(_ level: Logger.Level) -> Bool { level >= (handler?.logLevel ?? logger.logLevel) }

  /// Logs `fields` after `message`.
  public func log(level: Logger.Level, _ message: StaticString, _ fields: @autoclosure () -> LogFields) {
    if let handler {
      if isEnabled(level) { handler.log(level, message, fields()) }
    } else {
      logger.log(level: level, "\(message)", metadata: ["fields": .stringConvertible(fields())])
    }
  }
}
