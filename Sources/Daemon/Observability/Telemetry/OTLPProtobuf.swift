internal import ByteCoding

/// The requests of OTLP in Protocol Buffers. The numbers are those of opentelemetry-proto 1.x; the comments name the
/// messages.
struct OTLPProtobuf: Sendable {
  let service: String
  let version: String
  let instance: String

  /// `ExportTraceServiceRequest`.
  func traces(_ spans: [Span]) -> [UInt8] {
    request { scope in
      for span in spans { scope.message(2) { Self.write(span, to: &$0) } }
    }
  }

  /// `ExportMetricsServiceRequest`.
  func metrics(_ families: [MetricSnapshot], since start: Timestamp, at now: Timestamp) -> [UInt8] {
    request { scope in
      for family in families where !family.samples.isEmpty || !family.distributions.isEmpty {
        scope.message(2) { Self.write(family, since: start, at: now, to: &$0) }
      }
    }
  }

  /// One `ResourceSpans` or `ResourceMetrics`, with one `ScopeSpans` or `ScopeMetrics`: their numbers are the same.
  private func request(_ content: (inout ProtobufWriter) -> Void) -> [UInt8] {
    var request = ProtobufWriter()
    request.message(1) { group in
      group.message(1) { resource in
        for (name, value) in [
          ("service.name", service), ("service.version", version), ("service.instance.id", instance),
        ] {
          resource.message(1) { Self.write(name, .text(value), to: &$0) }
        }
      }
      group.message(2) { scoped in
        scoped.message(1) { scope in
          scope.text(1, service)
          scope.text(2, version)
        }
        content(&scoped)
      }
    }
    return request.bytes
  }

  /// `KeyValue` with its `AnyValue`.
  private static func write(_ name: String, _ value: Span.Value, to attribute: inout ProtobufWriter) {
    attribute.text(1, name)
    attribute.message(2) { any in
      switch value {
      case .text(let text): any.text(1, text, isChoice: true)
      case .flag(let flag): any.choice(2, UInt64(flag ? 1 : 0))
      case .number(let number): any.choice(3, UInt64(bitPattern: number))
      }
    }
  }

  /// `Span`.
  private static func write(_ span: Span, to message: inout ProtobufWriter) {
    message.bytes(1, Hex.decode(span.context.traceID) ?? [])
    message.bytes(2, Hex.decode(span.context.spanID) ?? [])
    if let parent = span.parentID { message.bytes(4, Hex.decode(parent) ?? []) }
    message.text(5, span.name)
    message.integer(6, Int64(span.kind.rawValue))
    message.fixed64(7, span.start.unixNanoseconds)
    message.fixed64(8, span.end.unixNanoseconds)
    for (name, value) in span.attributes { message.message(9) { write(name, value, to: &$0) } }
    // STATUS_CODE_ERROR. A span without a failure has no status.
    if span.isFailure { message.message(15) { $0.integer(3, 2) } }
  }

  /// `Metric`.
  private static func write(
    _ family: MetricSnapshot, since start: Timestamp, at now: Timestamp, to metric: inout ProtobufWriter
  ) {
    metric.text(1, family.name)
    metric.text(2, family.help)
    metric.text(3, family.unit)
    switch family.kind {
    case .gauge: metric.message(5) { writePoints(of: family, since: nil, at: now, to: &$0) }
    case .counter:
      metric.message(7) { sum in
        writePoints(of: family, since: start, at: now, to: &sum)
        sum.integer(2, cumulative)
        sum.flag(3, true)
      }
    case .histogram:
      metric.message(9) { histogram in
        for distribution in family.distributions {
          histogram.message(1) { write(distribution, of: family, since: start, at: now, to: &$0) }
        }
        histogram.integer(2, cumulative)
      }
    }
  }

  /// AGGREGATION_TEMPORALITY_CUMULATIVE.
  private static let cumulative: Int64 = 2

  /// The `NumberDataPoint`s of a `Gauge` or a `Sum`.
  private static func writePoints(
    of family: MetricSnapshot, since start: Timestamp?, at now: Timestamp, to message: inout ProtobufWriter
  ) {
    for sample in family.samples {
      message.message(1) { point in
        if let start { point.fixed64(2, start.unixNanoseconds) }
        point.fixed64(3, now.unixNanoseconds)
        point.choice(4, sample.value)
        for (name, value) in zip(family.labels, sample.labels) {
          point.message(7) { write(name, .text(value), to: &$0) }
        }
      }
    }
  }

  /// `HistogramDataPoint`.
  private static func write(
    _ distribution: MetricSnapshot.Distribution, of family: MetricSnapshot, since start: Timestamp, at now: Timestamp,
    to point: inout ProtobufWriter
  ) {
    point.fixed64(2, start.unixNanoseconds)
    point.fixed64(3, now.unixNanoseconds)
    point.fixed64(4, distribution.counts.reduce(0, +))
    point.choice(5, distribution.sum)
    point.packed(6, distribution.counts)
    point.packed(7, distribution.bounds.map(\.bitPattern))
    for (name, value) in zip(family.labels, distribution.labels) {
      point.message(9) { write(name, .text(value), to: &$0) }
    }
  }
}

extension Timestamp {
  /// Nanoseconds since 1970; 0 for a time before that, and the greatest number for one after 2554, which a faulty clock
  /// has.
  var unixNanoseconds: UInt64 {
    guard seconds >= 0 else { return 0 }
    let (product, overflows) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, exceeds) = product.addingReportingOverflow(UInt64(clamping: nanoseconds))
    return overflows || exceeds ? .max : sum
  }
}
