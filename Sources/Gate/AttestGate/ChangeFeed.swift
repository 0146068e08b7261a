public import AppAttest

/// How a gate learns what others did to the store that they share: other gates, and commands of an operator.
public protocol ChangeFeed: Sendable {
  /// Returns the changes after `position`, in the order of the commits; `nil` asks for the present position and for
  /// what has to be assumed of everything before it.
  ///
  /// Complete: a reader that continues from the position that it was given misses nothing, however long it pauses.
  func changes(after position: ChangePosition?) async throws(StoreError) -> Changes

  /// Yields when there may be something new. A hint that comes early but may get lost: read at intervals too. Each
  /// stream has its own hints.
  func notices() -> AsyncStream<Void>
}

/// A place in the order of a store's changes.
public struct ChangePosition: Sendable, Hashable {
  public let value: Int64
  public init(_ value: Int64) { self.value = value }
}

/// What was changed since a position, and the position to read on from.
public struct Changes: Sendable, Hashable {
  public let changes: [StoreChange]
  public let position: ChangePosition

  public init(_ changes: [StoreChange], upTo position: ChangePosition) {
    self.changes = changes
    self.position = position
  }

  /// How many changes a store keeps for those who have not read them; who comes later is told `.everything`.
  public static let kept: Int64 = 10_000

  /// The result of `rows`, changes that a store keeps, for a reader that has read up to `position`.
  ///
  /// - Parameters:
  ///   - rows: after `position`, in their order; `nil` stands for the keys that nodes share.
  ///   - newest: the position of the newest change, also if it is no longer kept.
  public init(
    _ rows: [(position: Int64, keyID: KeyID?)], after position: ChangePosition?, newest: Int64
  ) {
    // Behind the newest one is who has read another store: an older copy has taken this one's place.
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

/// One change.
public enum StoreChange: Sendable, Hashable {
  /// The key was revoked, restored or removed: the registry knows which.
  case key(KeyID)
  /// The keys that nodes share were replaced: those of nonces, or those of identities.
  case sharedKeys
  /// The changes are unknown: everything that is cached has to be read again.
  case everything
}

/// Reads a feed for as long as it is let.
public struct StoreWatch: Sendable {
  private let feed: any ChangeFeed
  private let interval: @Sendable () -> Duration

  /// - Parameter interval: how often to look when no notice comes; asked for before each rest, since it may change.
  public init(_ feed: any ChangeFeed, every interval: @autoclosure @escaping @Sendable () -> Duration) {
    self.feed = feed
    self.interval = interval
  }

  /// Calls `handle` with each change, in order, and with `.everything` first. Returns when the task is cancelled.
  ///
  /// A store that cannot be read is asked again at the next interval; nothing is missed. Where `handle` throws the
  /// change comes again.
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

  /// Hands on all that is new, of which a store gives so much at a time, and gives the position up to which it was
  /// taken.
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
      // The rest is asked for again.
    }
    return position
  }
}
