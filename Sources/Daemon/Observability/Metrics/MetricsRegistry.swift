internal import Locking

/// The metrics of a process, exported in Prometheus' text format.
///
/// Families keep the order of their creation. Two families with one name are a programming error; the second one is
/// not exported.
public final class MetricsRegistry: Sendable {
  private let families = LockedValue<[any MetricFamily]>([])

  public init() {}

  /// Creates counters of one name, distinguished by the values of `labels`.
  ///
  /// - Parameter name: A name in base units that ends in `_total`, as is usual in Prometheus.
  public func counters(_ name: String, _ help: String, labels: [String] = []) -> CounterFamily {
    add(CounterFamily(description: FamilyDescription(name: name, help: help, kind: .counter, labels: labels)))
  }

  /// Creates histograms of one name, in seconds, distinguished by the values of `labels`.
  ///
  /// - Parameter bounds: The upper bounds of the buckets, increasing. A bucket for all larger values is added.
  public func histograms(
    _ name: String, _ help: String, labels: [String] = [], bounds: [Duration] = HistogramFamily.commonBounds
  ) -> HistogramFamily {
    add(
      HistogramFamily(
        description: FamilyDescription(name: name, help: help, kind: .histogram, labels: labels), bounds: bounds))
  }

  /// Registers values that are kept elsewhere: `read` is called each time the metrics are read.
  ///
  /// - Parameter kind: `.counter` for a value that only rises.
  public func values(
    _ name: String, _ help: String, kind: MetricKind = .gauge, labels: [String] = [],
    read: @escaping @Sendable () async -> [Sample]
  ) {
    _ = add(
      ReadFamily(description: FamilyDescription(name: name, help: help, kind: kind, labels: labels), read: read))
  }

  private func add<Family: MetricFamily>(_ family: Family) -> Family {
    families.withLock { families in
      if !families.contains(where: { $0.description.name == family.description.name }) { families.append(family) }
    }
    return family
  }

  /// All metrics in the text format, version 0.0.4: to be served as `text/plain; version=0.0.4; charset=utf-8`.
  public func exposition() async -> [UInt8] {
    var writer = ExpositionWriter()
    for family in families.withLock(\.self) {
      writer.begin(family.description)
      await family.write(to: &writer)
    }
    return writer.bytes
  }
}

extension MetricsRegistry {
  /// The values of all families, for exports other than the text format.
  public func snapshot() async -> [MetricSnapshot] {
    var snapshots: [MetricSnapshot] = []
    for family in families.withLock(\.self) { snapshots.append(await family.snapshot()) }
    return snapshots
  }
}

/// The type of a family in Prometheus.
public enum MetricKind: String, Sendable, Hashable { case counter, gauge, histogram }

/// One value of a family.
public struct Sample: Sendable, Hashable {
  /// The values of the family's labels, in their order.
  public let labels: [String]
  public let value: Double

  public init(_ value: Double, _ labels: String...) {
    self.init(value, labels: labels)
  }

  init(_ value: Double, labels: [String]) {
    self.labels = labels
    self.value = value
  }
}

/// The name of a family and the other data that all its samples share.
struct FamilyDescription: Sendable {
  let name: String
  let help: String
  let kind: MetricKind
  let labels: [String]
}

protocol MetricFamily: Sendable {
  var description: FamilyDescription { get }
  func write(to writer: inout ExpositionWriter) async
  func snapshot() async -> MetricSnapshot
}

private struct ReadFamily: MetricFamily {
  let description: FamilyDescription
  let read: @Sendable () async -> [Sample]

  func snapshot() async -> MetricSnapshot {
    var snapshot = MetricSnapshot(description)
    snapshot.samples = await read()
    return snapshot
  }

  func write(to writer: inout ExpositionWriter) async {
    for sample in await read() {
      writer.sample(description.name, zip(description.labels, sample.labels), sample.value)
    }
  }
}
