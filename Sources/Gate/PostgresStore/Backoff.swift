/// The wait before the next connection attempt: exponential, with random jitter so that gates do not reconnect at the
/// same time.
struct Backoff: Sendable {
  private static let first = Duration.milliseconds(50)
  private static let longest = Duration.seconds(2)
  private var bound = first

  /// Returns a random duration between half of the bound and the bound, and doubles the bound up to 2 seconds.
  mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    defer { bound = min(bound * 2, Self.longest) }
    return bound * Double.random(in: 0.5...1, using: &random)
  }

  /// Starts over after a success.
  mutating func reset() { bound = Self.first }
}
