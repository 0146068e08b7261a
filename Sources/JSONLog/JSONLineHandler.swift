public import ByteCoding
public import Logging

/// Writes each log event as one JSON object on a line of its own.
///
/// `time` (RFC 3339, UTC, milliseconds), `level`, `logger` and `message` come first, then the metadata by name; metadata
/// cannot take one of those four names and is put under `metadata.NAME` instead.
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
      time: now(), level: event.level, logger: label, message: "\(event.message)",
      metadata: merged(with: event.metadata, error: event.error))
    sink.write(line.bytes)
  }

  /// What is nearer to the event wins.
  private func merged(with own: Logger.Metadata?, error: (any Error)?) -> Logger.Metadata {
    // As it mostly is: nothing to merge.
    if metadata.isEmpty, metadataProvider == nil, error == nil { return own ?? [:] }
    return
      metadata
      .merging(metadataProvider?.get() ?? [:]) { _, provided in provided }
      .merging(error.map { ["error": "\($0)"] } ?? [:]) { _, error in error }
      .merging(own ?? [:]) { _, explicit in explicit }
  }
}
