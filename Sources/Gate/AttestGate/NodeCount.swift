internal import Synchronization

/// How many gates share a limit, for those who divide one: read at each request, written when a gate comes or goes.
public final class NodeCount: Sendable {
  private let value = Atomic(1)

  public init() {}

  /// At least 1.
  public var count: Int { value.load(ordering: .relaxed) }

  public func set(_ count: Int) { value.store(max(1, count), ordering: .relaxed) }

  /// One gate's part of a limit for all of them, rounded up.
  public func share(of limit: Int) -> Int {
    let count = count
    return limit / count + (limit % count == 0 ? 0 : 1)
  }
}
