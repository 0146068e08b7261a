/// Measures the steps of a decision.
///
/// `observe` is called right after each step, on the thread that performed it, and must not block.
public struct Stopwatch: Sendable {
  /// A measured step.
  public enum Work: String, Sendable, Hashable, CaseIterable {
    /// Verifies the signature and the fields of an assertion.
    case assertion
    /// Verifies the chain, the nonce and the receipt of an attestation.
    case attestation
    /// Spends a nonce and advances a counter, until both are durable.
    case admit
    /// Stores a new key, until it is durable.
    case register
    /// Reads a key that was not cached.
    case lookup
  }

  private let observe: (@Sendable (Work, Duration) -> Void)?

  /// A stopwatch that measures nothing.
  public static let none = Stopwatch(observe: nil)

  public init(observe: (@Sendable (Work, Duration) -> Void)?) { self.observe = observe }

  /// Runs `body` and reports its duration, even if it throws.
  func time<Result, Failure: Error>(
    _ work: Work, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard let observe else { return try body() }
    let start = ContinuousClock.now
    defer { observe(work, ContinuousClock.now - start) }
    return try body()
  }

  /// Runs asynchronous `body` and reports its duration, even if it throws.
  func time<Result: Sendable, Failure: Error>(
    _ work: Work, isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    guard let observe else { return try await body() }
    let start = ContinuousClock.now
    defer { observe(work, ContinuousClock.now - start) }
    return try await body()
  }
}
