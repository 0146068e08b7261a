internal import Locking
public import Metrics
public import Observability

/// Collects the counters and timers of the backend and its libraries, and writes them in the Prometheus text format.
///
/// Recorders and gauges are ignored, because nothing here uses them. In names, characters other than letters, digits
/// and `_` become `_`. All metrics of one name must have the labels of the first one; others are ignored.
public final class MetricsExposition: MetricsFactory {
  fileprivate struct Families {
    var counters: [String: CounterFamily] = [:]
    var timers: [String: HistogramFamily] = [:]
    var labels: [String: [String]] = [:]
  }

  /// The metrics, for values that are kept elsewhere.
  public let registry = MetricsRegistry()
  private let families = LockedValue(Families())

  /// Creates an empty registry.
  public init() {}

  /// All metrics in the text format, version 0.0.4.
  public func text() async -> [UInt8] { await registry.exposition() }

  public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    let name = Self.name(label)
    let counter = families.withLock { families -> Observability.Counter? in
      guard let values = families.values(of: dimensions, in: name) else { return nil }
      let family = families.counters[name] ?? registry.counters(name, label, labels: dimensions.map { Self.name($0.0) })
      families.counters[name] = family
      return family.counter(values)
    }
    if let counter { return CountedSteps(counter) }
    return NOOPMetricsHandler.instance
  }

  public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    let name = Self.name(label)
    let histogram = families.withLock { families -> Histogram? in
      guard let values = families.values(of: dimensions, in: name) else { return nil }
      let family = families.timers[name] ?? registry.histograms(name, label, labels: dimensions.map { Self.name($0.0) })
      families.timers[name] = family
      return family.histogram(values)
    }
    if let histogram { return TimedSpans(histogram) }
    return NOOPMetricsHandler.instance
  }

  public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    NOOPMetricsHandler.instance
  }

  // Metrics are never removed: Prometheus expects counters to last as long as the process.
  public func destroyCounter(_ handler: any CounterHandler) {}
  public func destroyTimer(_ handler: any TimerHandler) {}
  public func destroyRecorder(_ handler: any RecorderHandler) {}

  private static func name(_ text: String) -> String {
    String(text.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
  }
}

extension MetricsExposition.Families {
  /// The values of the labels in `dimensions`; `nil` if the first metric of this name has other labels.
  fileprivate mutating func values(of dimensions: [(String, String)], in name: String) -> [String]? {
    let own = dimensions.map(\.0)
    if labels[name] == nil { labels[name] = own }
    return labels[name] == own ? dimensions.map(\.1) : nil
  }
}

private final class CountedSteps: CounterHandler {
  private let counter: Observability.Counter

  init(_ counter: Observability.Counter) { self.counter = counter }

  func increment(by amount: Int64) { counter.add(UInt64(max(0, amount))) }
  func reset() {}
}

private final class TimedSpans: TimerHandler {
  private let histogram: Histogram

  init(_ histogram: Histogram) { self.histogram = histogram }

  func recordNanoseconds(_ duration: Int64) { histogram.observe(.nanoseconds(duration)) }
}
