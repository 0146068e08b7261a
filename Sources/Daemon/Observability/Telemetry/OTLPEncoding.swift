public import ByteCoding

/// Requests of OTLP over HTTP (OpenTelemetry Protocol 1.x).
public struct OTLPEncoding: Sendable {
  /// The encoding of requests, and of their answers.
  public enum Form: String, Sendable, Hashable, CaseIterable {
    /// Ids in hex, 64-bit integers as strings, names in lowerCamelCase.
    case json
    /// Protocol Buffers.
    case protobuf
  }

  public let form: Form
  private let protobuf: OTLPProtobuf
  /// The attributes of the process that sends.
  private let resource: Resource
  private let scope: Scope

  /// - Parameters:
  ///   - version: The version of the program.
  ///   - instance: An id that no other process has.
  public init(service: String, version: String, instance: String, form: Form = .json) {
    self.form = form
    protobuf = OTLPProtobuf(service: service, version: version, instance: instance)
    resource = Resource(attributes: [
      Attribute("service.name", .text(service)), Attribute("service.version", .text(version)),
      Attribute("service.instance.id", .text(instance)),
    ])
    scope = Scope(name: service, version: version)
  }

  /// The media type of the requests.
  public var mediaType: String {
    switch form {
    case .json: "application/json"
    case .protobuf: "application/x-protobuf"
    }
  }

  /// The body of a request to `/v1/traces`.
  public func traces(_ spans: [Span]) -> [UInt8] {
    if form == .protobuf { return protobuf.traces(spans) }
    let scoped = ScopeSpans(scope: scope, spans: spans.map(SpanMessage.init))
    return bytes(["resourceSpans": [ResourceSpans(resource: resource, scopeSpans: [scoped])]])
  }

  /// The body of a request to `/v1/metrics`: counters and histograms are totals since `start`.
  public func metrics(_ families: [MetricSnapshot], since start: Timestamp, at now: Timestamp) -> [UInt8] {
    if form == .protobuf { return protobuf.metrics(families, since: start, at: now) }
    let messages = families.compactMap { MetricMessage($0, since: start.otlp, at: now.otlp) }
    let scoped = ScopeMetrics(scope: scope, metrics: messages)
    return bytes(["resourceMetrics": [ResourceMetrics(resource: resource, scopeMetrics: [scoped])]])
  }

  private func bytes(_ message: some Encodable) -> [UInt8] { Array(JSONText.encoding(message).utf8) }
}

extension Timestamp {
  /// Nanoseconds since 1970 as a decimal string, which is how JSON has 64-bit integers in OTLP.
  fileprivate var otlp: String { "\(unixNanoseconds)" }
}

// MARK: Messages, with the names of the protocol's definitions

extension MetricSnapshot {
  /// The unit in UCUM's notation, which the name implies; empty if it has none.
  var unit: String { name.contains("_seconds") ? "s" : name.contains("_bytes") ? "By" : "" }
}

private struct Resource: Encodable { let attributes: [Attribute] }

private struct Scope: Encodable {
  let name: String
  let version: String
}

private struct Attribute: Encodable {
  struct Value: Encodable {
    var stringValue: String?
    var intValue: String?
    var boolValue: Bool?
  }

  let key: String
  let value: Value

  init(_ key: String, _ value: Span.Value) {
    self.key = key
    self.value =
      switch value {
      case .text(let text): Value(stringValue: text)
      case .number(let number): Value(intValue: String(number))
      case .flag(let flag): Value(boolValue: flag)
      }
  }
}

private struct ResourceSpans: Encodable {
  let resource: Resource
  let scopeSpans: [ScopeSpans]
}

private struct ScopeSpans: Encodable {
  let scope: Scope
  let spans: [SpanMessage]
}

private struct SpanMessage: Encodable {
  struct Status: Encodable { let code: Int }

  let traceId: String
  let spanId: String
  let parentSpanId: String?
  let name: String
  let kind: Int
  let startTimeUnixNano: String
  let endTimeUnixNano: String
  let attributes: [Attribute]
  let status: Status?

  init(_ span: Span) {
    traceId = span.context.traceID
    spanId = span.context.spanID
    parentSpanId = span.parentID
    name = span.name
    kind = span.kind.rawValue
    (startTimeUnixNano, endTimeUnixNano) = (span.start.otlp, span.end.otlp)
    attributes = span.attributes.map { Attribute($0.name, $0.value) }
    // STATUS_CODE_ERROR. A span without a failure has no status.
    status = span.isFailure ? Status(code: 2) : nil
  }
}

private struct ResourceMetrics: Encodable {
  let resource: Resource
  let scopeMetrics: [ScopeMetrics]
}

private struct ScopeMetrics: Encodable {
  let scope: Scope
  let metrics: [MetricMessage]
}

private struct MetricMessage: Encodable {
  /// AGGREGATION_TEMPORALITY_CUMULATIVE.
  private static let cumulative = 2

  struct Sum: Encodable {
    let dataPoints: [NumberPoint]
    let aggregationTemporality: Int
    let isMonotonic: Bool
  }
  struct Gauge: Encodable { let dataPoints: [NumberPoint] }
  struct Histogram: Encodable {
    let dataPoints: [HistogramPoint]
    let aggregationTemporality: Int
  }
  struct NumberPoint: Encodable {
    let attributes: [Attribute]
    let startTimeUnixNano: String?
    let timeUnixNano: String
    let asDouble: Double
  }
  struct HistogramPoint: Encodable {
    let attributes: [Attribute]
    let startTimeUnixNano: String
    let timeUnixNano: String
    let count: String
    let sum: Double
    let bucketCounts: [String]
    let explicitBounds: [Double]
  }

  let name: String
  let description: String
  let unit: String?
  var sum: Sum?
  var gauge: Gauge?
  var histogram: Histogram?

  /// - Returns: `nil` for a family without values, which OTLP cannot express.
  init?(_ family: MetricSnapshot, since start: String, at now: String) {
    name = family.name
    description = family.help
    unit = family.unit.isEmpty ? nil : family.unit
    func attributes(_ labels: [String]) -> [Attribute] {
      zip(family.labels, labels).map { Attribute($0, .text($1)) }
    }
    func points(startingAt start: String?) -> [NumberPoint] {
      // JSON has no infinity.
      family.samples.filter(\.value.isFinite).map {
        NumberPoint(
          attributes: attributes($0.labels), startTimeUnixNano: start, timeUnixNano: now, asDouble: $0.value)
      }
    }
    switch family.kind {
    case .counter:
      sum = Sum(dataPoints: points(startingAt: start), aggregationTemporality: Self.cumulative, isMonotonic: true)
    case .gauge: gauge = Gauge(dataPoints: points(startingAt: nil))
    case .histogram:
      histogram = Histogram(
        dataPoints: family.distributions.map { distribution in
          HistogramPoint(
            attributes: attributes(distribution.labels), startTimeUnixNano: start, timeUnixNano: now,
            count: String(distribution.counts.reduce(0, +)), sum: distribution.sum,
            bucketCounts: distribution.counts.map { String($0) }, explicitBounds: distribution.bounds)
        }, aggregationTemporality: Self.cumulative)
    }
    guard !family.samples.isEmpty || !family.distributions.isEmpty else { return nil }
  }
}
