internal import Synchronization

/// The number of gates that share a limit. It is read at each request and written when a gate joins or leaves.
public final class NodeCount: Sendable {
  private let value = Atomic(1)

  public init() {}

  /// The number of gates, at least 1.
  public var count: Int { value.load(ordering: .relaxed) }

  public func set(_ count: Int) { value.store(max(1, count), ordering: .relaxed) }

  /// Returns this gate's share of a common limit, rounded up.
  public func share(of limit: Int) -> Int {
    let count = count
    return limit / count + (limit % count == 0 ? 0 : 1)
  }
}
