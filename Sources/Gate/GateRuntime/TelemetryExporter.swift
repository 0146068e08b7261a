internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Wire
internal import GateService
internal import Locking
internal import Logging
internal import Observability
internal import Settings
internal import Transport
internal import TransportEngine

/// Sends spans and metrics to a collector, by OTLP over HTTP.
///
/// Its connections have a thread of their own. Nothing that serves clients waits for it: spans that find the queue full
/// are dropped, and a batch that the collector does not accept in three attempts is lost. Both are counted.
final class TelemetryExporter: Sendable {
  /// The most spans of one request to the collector.
  private static let batch = 512
  private static let spanInterval = Duration.seconds(5)
  private static let metricsInterval = Duration.seconds(60)
  private static let attempts = 3
  /// For one attempt, from connecting to the end of the answer.
  private static let patience = Duration.seconds(3)
  /// The longest pause that a collector can ask for by `Retry-After`.
  private static let longestPause = Duration.seconds(30)
  /// For all exports after the stop, so that a slow collector cannot delay the exit.
  private static let lastPatience = Duration.seconds(3)

  let queue = SpanQueue()
  private let client: ServerClient
  private let fields: HeaderFields
  private let encoding: OTLPEncoding
  private let registry: MetricsRegistry
  private let logger: Logger
  private let startedAt = Timestamp.now()
  private let exported: Counter
  private let lost: Counter
  private let isFailing = LockedValue(false)
  private let hasReportedRejection = LockedValue(false)

  /// - Throws: `Failure` if a file of the settings cannot be used.
  init(
    _ settings: GateSettings.Telemetry, proxies: ProxyVariables = .ofProcess, registry: MetricsRegistry, logger: Logger
  ) throws(Failure) {
    self.registry = registry
    self.logger = logger
    client = try ServerClient(to: settings.collector, caFile: settings.caFile, section: "telemetry", proxies: proxies)
    var random = SystemRandomNumberGenerator()
    let instance = Hex.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    encoding = OTLPEncoding(
      service: "sallyport", version: Version.text, instance: instance,
      form: settings.encoding == .protobuf ? .protobuf : .json)
    var fields = HeaderFields([
      .init(name: "Host", value: settings.collector.authority),
      .init(name: "Content-Type", value: encoding.mediaType),
      .init(name: "User-Agent", value: "sallyport/\(Version.text)"),
    ])
    do throws(StartError) {
      for field in try Self.fields(in: settings.headersFile) { fields.append(field.name, field.value) }
    } catch {
      throw Failure(error)
    }
    self.fields = fields
    let results = registry.counters(
      "sallyport_telemetry_spans_total", "Spans by the result of their export.", labels: ["result"])
    (exported, lost) = (results.counter("exported"), results.counter("lost"))
    registry.values(
      "sallyport_telemetry_dropped_spans_total", "Spans that were dropped because the queue was full.", kind: .counter
    ) { [queue] in [Sample(Double(queue.dropped))] }
  }

  private static func fields(in file: String?) throws(StartError) -> [(name: String, value: String)] {
    guard let file else { return [] }
    let key = "telemetry.headers_file"
    guard let fields = HeaderLines.fields(in: try SettingFile.content(of: file, for: key)) else {
      throw StartError(key, "\(file) has no header fields", hint: HeaderLines.hint)
    }
    return fields
  }

  /// Exports until the task is cancelled, and then once more what is left, unless the collector failed before.
  ///
  /// Returns within `patience`, for the attempt under way, and `lastPatience` of the cancellation.
  func run() async {
    var nextMetrics = ContinuousClock.now + Self.metricsInterval
    while !Task.isCancelled {
      try? await Task.sleep(for: Self.spanInterval)
      guard !Task.isCancelled else { break }
      await exportSpans()
      guard .now >= nextMetrics, !Task.isCancelled else { continue }
      nextMetrics = ContinuousClock.now + Self.metricsInterval
      await exportMetrics()
    }
    guard !isFailing.withLock(\.self) else { return }
    let deadline = ContinuousClock.now + Self.lastPatience
    await exportSpans(until: deadline)
    await exportMetrics(until: deadline)
  }

  private func exportSpans(until deadline: ContinuousClock.Instant? = nil) async {
    while true {
      let spans = queue.take(Self.batch)
      guard !spans.isEmpty else { return }
      guard let rejected = await send(encoding.traces(spans), to: "/v1/traces", until: deadline) else {
        lost.add(UInt64(spans.count))
        // Later batches would wait for the same collector; they stay in the bounded queue.
        return
      }
      lost.add(UInt64(min(rejected, spans.count)))
      exported.add(UInt64(spans.count - min(rejected, spans.count)))
    }
  }

  private func exportMetrics(until deadline: ContinuousClock.Instant? = nil) async {
    let body = encoding.metrics(await registry.snapshot(), since: startedAt, at: .now())
    _ = await send(body, to: "/v1/metrics", until: deadline)
  }

  /// Sends `body`, again after failures that may pass. Returns how many of its items the collector rejected; `nil` if it
  /// did not accept the request.
  private func send(_ body: [UInt8], to path: String, until deadline: ContinuousClock.Instant?) async -> Int? {
    var pause = Duration.seconds(1)
    for attempt in 1...Self.attempts {
      let fault: String
      var wait = pause * Double.random(in: 0.75...1.25)
      do throws(ClientError) {
        let answer = try await client.post(
          body, to: client.address.path + path, fields: fields, until: deadline ?? .now + Self.patience)
        if (200..<300).contains(answer.status) {
          report(nil)
          guard let part = PartialSuccess(answer: answer.body, in: encoding.form) else { return 0 }
          report(part)
          return part.rejected
        }
        fault = "status \(answer.status)"
        // By the protocol, only these statuses may be repeated.
        guard [429, 502, 503, 504].contains(answer.status) else {
          report(fault)
          return nil
        }
        if let seconds = answer.headers.first("Retry-After").flatMap({ UInt16($0) }) {
          wait = max(wait, min(.seconds(Int(seconds)), Self.longestPause))
        }
      } catch {
        fault = error.description
      }
      report(fault)
      guard attempt < Self.attempts, !Task.isCancelled else { break }
      try? await Task.sleep(for: wait)
      guard !Task.isCancelled else { break }
      pause *= 2
    }
    return nil
  }

  /// Logs the first items that the collector rejected since the start; all are counted.
  private func report(_ part: PartialSuccess) {
    let isFirst = hasReportedRejection.withLock { hasReported in
      defer { hasReported = true }
      return !hasReported
    }
    guard isFirst else { return }
    logger.warning(
      "telemetry rejected in part",
      metadata: ["collector": place, "rejected": .number(part.rejected), "reason": "\(part.message)"])
  }

  private var place: Logger.MetadataValue { "\(client.address.host):\(client.address.port)" }

  /// Logs when exports begin to fail, and when they succeed again.
  private func report(_ fault: String?) {
    let changed = isFailing.withLock { isFailing in
      defer { isFailing = fault != nil }
      return isFailing != (fault != nil)
    }
    guard changed else { return }
    if let fault {
      logger.warning("telemetry export failed", metadata: ["collector": place, "reason": "\(fault)"])
    } else {
      logger.notice("telemetry exported again", metadata: ["collector": place])
    }
  }
}
