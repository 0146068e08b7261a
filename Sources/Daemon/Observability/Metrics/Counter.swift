internal import Locking
internal import Synchronization

/// A number that only increases. Adding takes no lock.
public final class Counter: Sendable {
  private let count = Atomic<UInt64>(0)

  init() {}

  public var value: UInt64 { count.load(ordering: .relaxed) }

  public func add(_ amount: UInt64 = 1) { count.wrappingAdd(amount, ordering: .relaxed) }
}

/// Counters of one name.
public final class CounterFamily: MetricFamily {
  let description: FamilyDescription
  private let counters = LockedValue<[[String]: Counter]>([:])

  init(description: FamilyDescription) { self.description = description }

  /// Returns the counter with these values of the family's labels. It is exported from the first call on.
  ///
  /// Keep the counter where it is used for each connection. The values must be few: words of this program, never
  /// values from a client.
  public func counter(_ labels: String...) -> Counter { counter(labels) }

  /// The same, with the values as a list.
  public func counter(_ labels: [String]) -> Counter {
    counters.withLock { counters in
      if let counter = counters[labels] { return counter }
      let counter = Counter()
      counters[labels] = counter
      return counter
    }
  }

  /// Each counter's labels and value, sorted by labels.
  public var values: [(labels: [String], value: UInt64)] {
    counters.withLock(\.self).sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { ($0.key, $0.value.value) }
  }

  func snapshot() -> MetricSnapshot {
    var snapshot = MetricSnapshot(description)
    snapshot.samples = values.map { Sample(Double($0.value), labels: $0.labels) }
    return snapshot
  }

  func write(to writer: inout ExpositionWriter) {
    for (labels, value) in values { writer.sample(description.name, zip(description.labels, labels), Double(value)) }
  }
}
