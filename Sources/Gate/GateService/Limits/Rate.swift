/// A rate limit: `count` at once, and then `count` in each `span`.
public struct Rate: Sendable, Hashable {
  /// The number of allowed events, 1 to 10,000.
  public let count: Int
  /// The time in which the allowance is restored, 1 second to 1 day.
  public let span: Duration

  /// - Returns: `nil` if a value is outside the bounds above.
  public init?(_ count: Int, every span: Duration) {
    guard (1...10_000).contains(count), span >= .seconds(1), span <= .seconds(86_400) else { return nil }
    (self.count, self.span) = (count, span)
  }

  private init(share: Int, of span: Duration) { (count, self.span) = (share, span) }

  /// Returns the share of one of `gates`, rounded up so that it is never zero.
  func share(ofOneIn gates: Int) -> Rate { Rate(share: (count + max(1, gates) - 1) / max(1, gates), of: span) }
}
