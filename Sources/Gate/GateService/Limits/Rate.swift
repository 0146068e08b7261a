/// How often something may be done: `count` times at once, and `count` times again over each `span`.
public struct Rate: Sendable, Hashable {
  /// 1 to 10,000.
  public let count: Int
  /// 1 second to 1 day.
  public let span: Duration

  /// - Returns: `nil` for a number or a time beyond the bounds above.
  public init?(_ count: Int, every span: Duration) {
    guard (1...10_000).contains(count), span >= .seconds(1), span <= .seconds(86_400) else { return nil }
    (self.count, self.span) = (count, span)
  }

  private init(share: Int, of span: Duration) { (count, self.span) = (share, span) }

  /// The part of one of `gates`, rounded up, so that no gate's part is zero.
  func share(ofOneIn gates: Int) -> Rate { Rate(share: (count + max(1, gates) - 1) / max(1, gates), of: span) }
}
