internal import Locking

/// The metrics of a process, to be read in Prometheus' text format.
///
/// Families keep the order in which they were made. Making one twice under the same name is a mistake of the program;
/// the second is left out of what is read.
public final class MetricsRegistry: Sendable {
  private let families = LockedValue<[any MetricFamily]>([])

  public init() {}

  /// Counters of one name, told apart by the values of `labels`.
  ///
  /// - Parameter name: by Prometheus' habit in base units, ending in `_total`.
  public func counters(_ name: String, _ help: String, labels: [String] = []) -> CounterFamily {
    add(CounterFamily(description: FamilyDescription(name: name, help: help, kind: .counter, labels: labels)))
  }

  /// Histograms of one name, in seconds, told apart by the values of `labels`.
  ///
  /// - Parameter bounds: the upper bounds of the buckets, rising; one for everything is added.
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

/// What Prometheus is told that a family is.
public enum MetricKind: String, Sendable, Hashable { case counter, gauge, histogram }

/// One value of a family.
public struct Sample: Sendable, Hashable {
  /// The values of the family's labels, in their order.
  public let labels: [String]
  public let value: Double

  public init(_ value: Double, _ labels: String...) {
    self.labels = labels
    self.value = value
  }
}

/// The name of a family and what else is the same for all of its samples.
struct FamilyDescription: Sendable {
  let name: String
  let help: String
  let kind: MetricKind
  let labels: [String]
}

protocol MetricFamily: Sendable {
  var description: FamilyDescription { get }
  func write(to writer: inout ExpositionWriter) async
}

private struct ReadFamily: MetricFamily {
  let description: FamilyDescription
  let read: @Sendable () async -> [Sample]

  func write(to writer: inout ExpositionWriter) async {
    for sample in await read() {
      writer.sample(description.name, zip(description.labels, sample.labels), sample.value)
    }
  }
}
