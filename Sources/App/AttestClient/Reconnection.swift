public import Wire

/// When to open another socket after one ended or was refused: growing pauses that differ from device to device, so
/// that many devices do not return to a gate at the same moment.
///
/// A value without a clock: the app waits.
///
/// ```swift
/// var reconnection = Reconnection()
/// while let pause = reconnection.pause(after: end.advice) {
///   try await Task.sleep(for: pause)
///   // Open a socket. After some time without an error call `reconnection.reset()`.
/// }
/// ```
public struct Reconnection: Sendable, Hashable {
  /// The upper bound of the first pause.
  public let first: Duration
  /// The upper bound of every pause that the gate does not ask for.
  public let longest: Duration
  /// The number of pauses since the last `reset()`.
  public private(set) var attempts = 0

  /// Begins with pauses of at most `first`, whose bound doubles up to `longest`.
  public init(first: Duration = .seconds(1), longest: Duration = .seconds(60)) {
    (self.first, self.longest) = (first, longest)
  }

  /// Forgets the pauses so far. Call it when a socket has been open for a while.
  public mutating func reset() { attempts = 0 }

  /// Returns how long to wait before the next socket, or `nil` if another socket would end in the same way.
  ///
  /// The pause is a random one of the upper half of its bound, and never less than `retryAfter`.
  ///
  /// - Parameters:
  ///   - advice: That of the refusal (`GateRefusal.advice`) or of the end (`SocketError.advice`). `.newKey` and
  ///     `.freshChallenge` are retried: `AttestSession` makes the key and the challenge.
  ///   - retryAfter: What the gate asks for.
  public mutating func pause(
    after advice: GateRefusalCode.Advice, retryAfter: Duration? = nil
  ) -> Duration? {
    var random = SystemRandomNumberGenerator()
    return pause(after: advice, retryAfter: retryAfter, using: &random)
  }

  /// Returns the same as `pause(after:retryAfter:)`, with randomness of the caller.
  public mutating func pause(
    after advice: GateRefusalCode.Advice, retryAfter: Duration? = nil, using random: inout some RandomNumberGenerator
  ) -> Duration? {
    switch advice {
    case .stop, .fixRequest: return nil
    case .retryLater, .newKey, .freshChallenge: break
    }
    // 2^20 times the first pause is more than a week for a first pause of a second: the bound cannot overflow.
    let bound = min(first * (1 << min(attempts, 20)), longest)
    attempts += 1
    let pause = bound * Double.random(in: 0.5...1, using: &random)
    return max(pause, retryAfter ?? .zero)
  }
}
