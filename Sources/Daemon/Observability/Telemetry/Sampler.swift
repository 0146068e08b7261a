/// Decides which requests are traced.
public struct Sampler: Sendable, Hashable {
  /// Ids below this number are sampled, of 2^56 numbers.
  private let threshold: UInt64
  private static let bits = 56

  /// - Parameter ratio: The share of requests, 0 to 1.
  /// - Returns: `nil` for another number.
  public init?(ratio: Double) {
    guard (0...1).contains(ratio) else { return nil }
    threshold = UInt64((ratio * Double(UInt64(1) << Self.bits)).rounded())
  }

  /// Whether the request `id` is sampled: its last 14 hex digits are a number below the threshold.
  ///
  /// The gate makes the ids at random. A client's trace id must not decide: a client could then have all of its
  /// requests traced.
  public func samples(_ id: String) -> Bool {
    guard let number = UInt64(id.suffix(Self.bits / 4), radix: 16) else { return false }
    return number < threshold
  }
}
