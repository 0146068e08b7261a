/// The result of a run, for programs and for people.
struct LoadReport: Sendable, Encodable {
  struct Latency: Sendable, Encodable {
    let mean, p50, p90, p99, p999, max: Double
  }

  let mode: String
  let url: String
  let connections: Int
  /// Bytes of a message.
  let size: Int
  let seconds: Double
  /// Messages, connections or registrations, as the mode has it.
  let count: UInt64
  let perSecond: Double
  /// Sockets that ended early, connections and registrations that failed.
  let losses: Int
  /// Messages that came back changed.
  let mismatches: Int
  /// The attempts of a storm that did not succeed.
  let attemptsFailed: Int?
  /// In microseconds; `nil` if no times were measured.
  let latency: Latency?

  private enum CodingKeys: String, CodingKey {
    case mode, url, connections, size, seconds, count, perSecond, losses, mismatches, attemptsFailed
    case latency = "latencyMicroseconds"
  }

  init(_ result: LoadResult, of plan: LoadPlan, at url: String) {
    let tally = result.tally
    mode = plan.mode.name
    self.url = url
    connections = plan.connections
    size = plan.size
    seconds = result.seconds
    count = UInt64(tally.count)
    perSecond = result.seconds > 0 ? Double(tally.count) / result.seconds : 0
    losses = tally.losses
    mismatches = tally.mismatches
    attemptsFailed = if case .storm = plan.mode { tally.attemptsFailed } else { nil }
    let histogram = tally.latency
    func quantile(_ fraction: Double) -> Double { Double(histogram.quantile(fraction)) / 1000 }
    latency =
      histogram.total == 0
      ? nil
      : Latency(
        mean: Double(histogram.mean) / 1000, p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99),
        p999: quantile(0.999), max: Double(histogram.max) / 1000)
    unit = plan.mode.unit
  }

  private let unit: String

  var text: String {
    var lines = ["\(connections) connections, \(size) bytes a message, \(tenths(seconds)) s, \(url)"]
    lines.append("\(count) \(unit), \(tenths(perSecond)) a second")
    if let attemptsFailed { lines.append("\(attemptsFailed) attempts failed; times are those since the storm began") }
    if losses > 0 || mismatches > 0 { lines.append("\(losses) lost, \(mismatches) changed") }
    if let latency {
      let values = [
        ("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99), ("p99.9", latency.p999), ("max", latency.max),
      ]
      lines.append(values.map { "\($0) \(timeText(UInt64($1 * 1000)))" }.joined(separator: "   "))
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

extension Histogram {
  /// A row for each power of two: its bound, a bar, and how many values it has.
  var chart: String {
    let rows = octaves
    let most = rows.map(\.count).max() ?? 0
    guard most > 0 else { return "" }
    return rows.map { row in
      let bar = String(repeating: "#", count: Int((Double(row.count) / Double(most) * 40).rounded(.up)))
      return "< \(padded(timeText(row.below), 9)) \(bar)\(String(repeating: " ", count: 41 - bar.count))\(row.count)\n"
    }.joined()
  }
}

/// `1.2 ms`, with three digits or so.
func timeText(_ nanoseconds: UInt64) -> String {
  switch nanoseconds {
  case ..<100_000: "\(tenths(Double(nanoseconds) / 1e3)) us"
  case ..<10_000_000: "\(tenths(Double(nanoseconds / 10_000) / 100, digits: 2)) ms"
  case ..<1_000_000_000: "\(nanoseconds / 1_000_000) ms"
  default: "\(tenths(Double(nanoseconds) / 1e9)) s"
  }
}

/// A number with one decimal, or `digits`.
func tenths(_ value: Double, digits: Int = 1) -> String {
  let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
  let whole = Int((value * scale).rounded())
  let fraction = String(whole % Int(scale))
  return "\(whole / Int(scale)).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
}

private func padded(_ text: String, _ width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.count))
}
