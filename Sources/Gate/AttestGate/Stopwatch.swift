/// Tells how long the parts of a decision take.
///
/// `observe` is called on whatever thread did the work, a moment after each piece of it, and must not wait.
public struct Stopwatch: Sendable {
  /// A piece of work.
  public enum Work: String, Sendable, Hashable, CaseIterable {
    /// The signature and the fields of an assertion.
    case assertion
    /// The chain, the nonce and the receipt of an attestation.
    case attestation
    /// Spending a nonce and advancing a counter, until that is durable.
    case admit
    /// Entering a key, until that is durable.
    case register
    /// Reading a key that was not at hand.
    case lookup
  }

  private let observe: (@Sendable (Work, Duration) -> Void)?

  /// Discards its measurements.
  public static let none = Stopwatch(observe: nil)

  public init(observe: (@Sendable (Work, Duration) -> Void)?) { self.observe = observe }

  /// Does `body` and tells how long that took, also if it throws.
  func time<Result, Failure: Error>(
    _ work: Work, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard let observe else { return try body() }
    let start = ContinuousClock.now
    defer { observe(work, ContinuousClock.now - start) }
    return try body()
  }

  /// The same for what waits.
  func time<Result: Sendable, Failure: Error>(
    _ work: Work, isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    guard let observe else { return try await body() }
    let start = ContinuousClock.now
    defer { observe(work, ContinuousClock.now - start) }
    return try await body()
  }
}
