internal import AppAttest
public import AttestGate
internal import Locking

/// Follows the changes of a store for as long as a gate lives, across reloads of its settings.
///
/// There is one in a process: no other one has to read the same changes, and keys whose sessions are to be rechecked
/// wait for no other reader.
public final class ChangeFollower: Sendable {
  private let feed: any ChangeFeed
  private let sessions: LiveSessions
  private let state: LockedValue<State>

  private struct State {
    /// Of the settings that serve, never none; behind it of the next ones, while they take over.
    var responses: [ChangeResponse]
    var interval: Duration
  }

  /// - Parameters:
  ///   - sessions: the same as that of the responses.
  ///   - response: what is done about a change.
  ///   - interval: how often to look when no notice comes. A revocation is answered within this time, and at once where
  ///     the store gives notice.
  public init(
    _ feed: any ChangeFeed, sessions: LiveSessions, response: ChangeResponse, every interval: Duration
  ) {
    self.feed = feed
    self.sessions = sessions
    state = LockedValue(State(responses: [response], interval: interval))
  }

  /// Has every change from now on answered by `response` too. To be called before requests are decided by what it keeps
  /// up to date.
  public func begin(_ response: ChangeResponse) { state.withLock { $0.responses.append(response) } }

  /// Has changes answered by `response` alone from now on, and the feed read so often.
  public func settle(on response: ChangeResponse, every interval: Duration) {
    let closedSessions = state.withLock { state in
      defer { state = State(responses: [response], interval: interval) }
      return state.responses[0].closesSessions
    }
    // Those of keys that were revoked while nothing followed from it.
    if response.closesSessions, !closedSessions { sessions.recheckEveryKey() }
  }

  /// Works until the task is cancelled. To be called once.
  public func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.recheckKeys() }
      await StoreWatch(feed, every: self.interval).run { change throws(StoreError) in
        for response in self.responses { try await response.respond(to: change) }
      }
      group.cancelAll()
    }
  }

  private var responses: [ChangeResponse] { state.withLock { $0.responses } }
  private var interval: Duration { state.withLock { $0.interval } }

  /// Rechecks keys that changed while one of their sessions was being admitted. Repeats until the store answers,
  /// since no later call would.
  private func recheckKeys() async {
    for await keyID in sessions.recheck {
      while !Task.isCancelled {
        do throws(StoreError) {
          for response in responses { try await response.check(keyID) }
          break
        } catch {
          try? await Task.sleep(for: .seconds(1))
        }
      }
    }
  }
}
