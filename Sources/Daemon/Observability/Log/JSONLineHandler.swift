public import ByteCoding
public import Logging

/// Writes each log event as one JSON object per line.
///
/// `time` (RFC 3339, UTC, milliseconds), `level`, `logger` and `message` are first, then the metadata by name.
/// Metadata with one of these four names is written as `metadata.NAME`.
public struct JSONLineHandler: LogHandler {
  public var metadata: Logger.Metadata = [:]
  public var metadataProvider: Logger.MetadataProvider?
  public var logLevel: Logger.Level = .info

  private let label: String
  private let sink: LineSink
  private let now: @Sendable () -> Timestamp

  public init(label: String, sink: LineSink, now: @escaping @Sendable () -> Timestamp = { .now() }) {
    self.label = label
    self.sink = sink
    self.now = now
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    let line = LogLine(
      time: now(), level: event.level, logger: label, message: event.message.description,
      metadata: event.metadata(over: metadata, metadataProvider))
    sink.write(line.bytes)
  }

  /// Whether a line has only the fields of its event.
  var addsNothing: Bool { metadata.isEmpty && metadataProvider == nil }

  /// Writes the line of an event whose only metadata are `fields`.
  func log(_ level: Logger.Level, _ message: StaticString, _ fields: LogFields) {
    sink.write(LogLine.bytes(time: now(), level: level, logger: label, message: message, fields))
  }
}

extension LogEvent {
  /// Returns the metadata for the line. For equal names the value closest to the event is used.
  func metadata(
    over handler: Logger.Metadata, _ provider: Logger.MetadataProvider?
  ) -> Logger.Metadata {
    // The usual case: there is nothing to merge.
    if handler.isEmpty, provider == nil, error == nil { return metadata ?? [:] }
    return
      handler
      .merging(provider?.get() ?? [:]) { _, provided in provided }
      .merging(error.map { ["error": "\($0)"] } ?? [:]) { _, error in error }
      .merging(metadata ?? [:]) { _, explicit in explicit }
  }
}
