public import AppAttest

/// Delivers the changes that other gates and operator commands made to a shared store.
public protocol ChangeFeed: Sendable {
  /// Returns the changes after `position` in commit order. `nil` asks for the current position; the result then
  /// starts with `.everything`.
  ///
  /// The sequence has no gaps: a reader that continues from the returned position misses nothing, however long it
  /// waits.
  func changes(after position: ChangePosition?) async throws(StoreError) -> Changes

  /// Yields when there may be new changes. Notices arrive early but may be lost, so the caller also has to poll. Each
  /// stream gets its own notices.
  func notices() -> AsyncStream<Void>
}

/// A position in the sequence of a store's changes.
public struct ChangePosition: Sendable, Hashable {
  public let value: Int64
  public init(_ value: Int64) { self.value = value }
}

/// The changes after a position, and the position from which to continue.
public struct Changes: Sendable, Hashable {
  public let changes: [StoreChange]
  public let position: ChangePosition

  public init(_ changes: [StoreChange], upTo position: ChangePosition) {
    self.changes = changes
    self.position = position
  }

  /// The number of changes that a store keeps. A reader that is further behind gets `.everything`.
  public static let kept: Int64 = 10_000

  /// Creates the result for a reader that has read up to `position`.
  ///
  /// - Parameters:
  ///   - rows: The stored changes after `position`, in order; a `nil` key means that the shared keys were replaced.
  ///   - newest: The position of the newest change, even if that change is no longer stored.
  public init(
    _ rows: [(position: Int64, keyID: KeyID?)], after position: ChangePosition?, newest: Int64
  ) {
    // A position beyond the newest one comes from another store: this one was replaced by an older copy.
    let isGapless = position.map { rows.first?.position ?? newest + 1 == $0.value + 1 && $0.value <= newest } ?? false
    guard isGapless else {
      self.init([.everything], upTo: ChangePosition(max(newest, rows.last?.position ?? newest)))
      return
    }
    self.init(
      rows.map { $0.keyID.map(StoreChange.key) ?? .sharedKeys },
      upTo: ChangePosition(rows.last?.position ?? newest))
  }
}

/// One change to a store.
public enum StoreChange: Sendable, Hashable {
  /// The key was revoked, restored or removed, or its risk metric changed. The registry has the current state.
  case key(KeyID)
  /// The keys that nodes share were replaced: the challenge keys or the identity signing keys.
  case sharedKeys
  /// Any part of the store may have changed: everything that is cached has to be read again.
  case everything
}

/// Reads a change feed until its task is cancelled.
public struct StoreWatch: Sendable {
  private let feed: any ChangeFeed
  private let interval: @Sendable () -> Duration

  /// - Parameter interval: The time between two polls without a notice. It is evaluated before each pause, since it
  ///   may change.
  public init(_ feed: any ChangeFeed, every interval: @autoclosure @escaping @Sendable () -> Duration) {
    self.feed = feed
    self.interval = interval
  }

  /// Calls `handle` with each change in order, starting with `.everything`. Returns when the task is cancelled.
  ///
  /// If the store cannot be read, the next interval tries again and no change is lost. If `handle` throws, the same
  /// change is delivered again.
  public func run(_ handle: @Sendable (StoreChange) async throws(StoreError) -> Void) async {
    let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [feed] in
        for await _ in feed.notices() { wake.yield() }
      }
      group.addTask { [interval] in
        while !Task.isCancelled {
          wake.yield()
          try? await Task.sleep(for: interval())
        }
        wake.finish()
      }
      var position: ChangePosition?
      for await _ in wakes {
        if Task.isCancelled { break }
        position = await read(after: position, handle)
      }
      group.cancelAll()
    }
  }

  /// Delivers all new changes, page by page, and returns the position up to which `handle` accepted them.
  private func read(
    after start: ChangePosition?, _ handle: @Sendable (StoreChange) async throws(StoreError) -> Void
  ) async -> ChangePosition? {
    var position = start
    do throws(StoreError) {
      while !Task.isCancelled {
        let news = try await feed.changes(after: position)
        for change in news.changes { try await handle(change) }
        position = news.position
        if news.changes.isEmpty { break }
      }
    } catch {
      // The next round asks again for the rest.
    }
    return position
  }
}
