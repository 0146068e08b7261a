internal import Locking

/// How often durations fell into which range.
public final class Histogram: Sendable {
  struct State: Sendable {
    /// The count of each bucket alone. The last one counts values above all bounds.
    var counts: [UInt64]
    var sum: Duration = .zero
  }

  /// In attoseconds: two numbers are compared in place, two durations by a call.
  private let bounds: [Int128]
  private let state: LockedValue<State>

  init(bounds: [Duration]) {
    self.bounds = bounds.map(\.attoseconds)
    state = LockedValue(State(counts: Array(repeating: 0, count: bounds.count + 1)))
  }

  /// Counts one duration.
  public func observe(_ duration: Duration) {
    let attoseconds = duration.attoseconds
    let bucket = bounds.firstIndex { attoseconds <= $0 } ?? bounds.count
    state.withLock { state in
      state.counts[bucket] += 1
      state.sum += duration
    }
  }

  var snapshot: State { state.withLock(\.self) }
}

/// Histograms of one name.
public final class HistogramFamily: MetricFamily {
  /// From a tenth of a millisecond to ten seconds.
  public static let commonBounds: [Duration] = [
    .microseconds(100), .microseconds(250), .microseconds(500), .milliseconds(1), .microseconds(2500),
    .milliseconds(5), .milliseconds(10), .milliseconds(25), .milliseconds(50), .milliseconds(100), .milliseconds(250),
    .milliseconds(500), .seconds(1), .milliseconds(2500), .seconds(5), .seconds(10),
  ]

  let description: FamilyDescription
  private let bounds: [Duration]
  private let histograms = LockedValue<[[String]: Histogram]>([:])

  init(description: FamilyDescription, bounds: [Duration]) {
    self.description = description
    self.bounds = bounds
  }

  /// The histogram with these values of the family's labels; it is there from the first call on.
  public func histogram(_ labels: String...) -> Histogram { histogram(labels) }

  /// The same, with the values as a list.
  public func histogram(_ labels: [String]) -> Histogram {
    histograms.withLock { histograms in
      if let histogram = histograms[labels] { return histogram }
      let histogram = Histogram(bounds: bounds)
      histograms[labels] = histogram
      return histogram
    }
  }

  func snapshot() -> MetricSnapshot {
    var snapshot = MetricSnapshot(description)
    let sorted = histograms.withLock(\.self).sorted { $0.key.lexicographicallyPrecedes($1.key) }
    snapshot.distributions = sorted.map { labels, histogram in
      let state = histogram.snapshot
      return .init(
        labels: labels, bounds: bounds.map(\.inSeconds), counts: state.counts, sum: state.sum.inSeconds)
    }
    return snapshot
  }

  func write(to writer: inout ExpositionWriter) {
    for (labels, histogram) in histograms.withLock(\.self).sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      let state = histogram.snapshot
      let own = Array(zip(description.labels, labels))
      var total: UInt64 = 0
      for (count, bound) in zip(state.counts, bounds.map { ExpositionWriter.text($0.inSeconds) } + ["+Inf"]) {
        total += count
        writer.sample(description.name + "_bucket", own + [("le", bound)], Double(total))
      }
      writer.sample(description.name + "_sum", own, state.sum.inSeconds)
      writer.sample(description.name + "_count", own, Double(total))
    }
  }
}

extension Duration {
  /// In seconds, as Prometheus counts time.
  public var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
