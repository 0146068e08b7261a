/// How long to wait before the next attempt to connect: twice as long after each failure, and never as long as others
/// who failed at the same time.
struct Backoff: Sendable {
  private static let first = Duration.milliseconds(50)
  private static let longest = Duration.seconds(2)
  private var bound = first

  /// Between half of the bound and the bound; doubles it.
  mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    defer { bound = min(bound * 2, Self.longest) }
    return bound * Double.random(in: 0.5...1, using: &random)
  }

  /// Starts from the first pause again, after a success.
  mutating func reset() { bound = Self.first }
}
