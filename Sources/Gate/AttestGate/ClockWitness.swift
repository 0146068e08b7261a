public import ByteCoding
internal import Locking

/// The last difference between the gate's clock and Apple's, as registrations showed it.
///
/// Apple dates a receipt when it makes it, and signs it with the hash of the gate's nonce, which is valid for a minute.
/// So a genuine receipt that is minutes away from now says that the gate's clock is wrong. Only Apple can make one.
public final class ClockWitness: Sendable {
  /// A clock that was found to be wrong.
  public struct Fault: Sendable, Hashable {
    /// The time by which the gate's clock is ahead; negative if it is behind.
    public let ahead: Duration
    /// When the last registration was refused for it, by the gate's clock.
    public let seenAt: Timestamp

    /// The fault in one sentence, for operators.
    public var text: String { ClockWitness.text(ahead: ahead) }
  }

  private let current = LockedValue<Fault?>(nil)
  private let changed: @Sendable (Fault?) -> Void

  /// - Parameter changed: Is called with the fault when a registration shows a wrong clock for the first time, and with
  ///   `nil` when a later one is in time. Registrations between the two do not repeat it.
  public init(changed: @escaping @Sendable (Fault?) -> Void = { _ in }) { self.changed = changed }

  /// The fault; `nil` if no registration has shown one, or a later one was in time.
  public var fault: Fault? { current.withLock(\.self) }

  /// Notes a genuine receipt of `created`, seen at `now`.
  func note(created: Timestamp, at now: Timestamp, isFresh: Bool) {
    let fault = isFresh ? nil : Fault(ahead: now.since(created), seenAt: now)
    let before = current.withLock { current in
      defer { current = fault }
      return current
    }
    if (before == nil) != (fault == nil) { changed(fault) }
  }

  /// Describes a clock that is ahead by `ahead`, or behind if it is negative.
  static func text(ahead: Duration) -> String {
    let seconds = ahead.components.seconds
    return "the gate's clock is \(seconds.magnitude) seconds \(seconds < 0 ? "behind" : "ahead of") Apple's"
  }
}
