/// Counts durations in buckets whose width grows with the value. A result differs from the true value by less than
/// 1.6 percent, and recording costs a few instructions.
///
/// Each power of two has 64 buckets, as in an HDR histogram of two digits.
struct Histogram: Sendable {
  private static let subBits = 6
  private static let sub = 1 << subBits

  /// By `bucket(of:)`, up to 2^43 ns, which is more than two hours.
  private var counts = [UInt64](repeating: 0, count: sub * 38)
  private(set) var total: UInt64 = 0
  /// Nanoseconds, exact.
  private(set) var max: UInt64 = 0
  private var sum: UInt64 = 0

  mutating func record(_ nanoseconds: UInt64) {
    let bucket = Swift.min(Self.bucket(of: nanoseconds), counts.count - 1)
    counts[bucket] += 1
    total += 1
    sum &+= nanoseconds
    max = Swift.max(max, nanoseconds)
  }

  /// Nanoseconds; 0 without any value.
  var mean: UInt64 { total == 0 ? 0 : sum / total }

  /// The value, in nanoseconds, that the share `fraction` of all values does not exceed; 0 without any value.
  func quantile(_ fraction: Double) -> UInt64 {
    let rank = Swift.max(1, UInt64((Double(total) * fraction).rounded(.up)))
    var seen: UInt64 = 0
    for (bucket, count) in counts.enumerated() {
      seen += count
      if seen >= rank { return Swift.min(Self.upperBound(of: bucket), max) }
    }
    return max
  }

  /// How many values lie below each of the powers of two that bound them, from the first to the last with any.
  var octaves: [(below: UInt64, count: UInt64)] {
    var rows: [(below: UInt64, count: UInt64)] = []
    var bound: UInt64 = UInt64(Self.sub)
    for start in stride(from: 0, to: counts.count, by: Self.sub) {
      rows.append((bound, counts[start..<(start + Self.sub)].reduce(0, +)))
      bound *= 2
    }
    let used = rows.indices.filter { rows[$0].count > 0 }
    guard let first = used.first, let last = used.last else { return [] }
    return Array(rows[first...last])
  }

  private static func bucket(of value: UInt64) -> Int {
    guard value >= sub else { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount - subBits
    // The first bit is known by the exponent.
    return (exponent + 1) << subBits + Int(value >> UInt64(exponent)) - sub
  }

  private static func upperBound(of bucket: Int) -> UInt64 {
    guard bucket >= sub else { return UInt64(bucket) }
    let exponent = bucket >> subBits - 1
    let mantissa = UInt64(bucket & (sub - 1) + sub)
    return (mantissa + 1) << UInt64(exponent) - 1
  }
}
