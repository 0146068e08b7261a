internal import AppAttest
public import AttestGate
internal import Locking

/// Follows the changes of a store for the life of the gate, across reloads of its settings.
///
/// A process has one follower, so that each change is read once.
public final class ChangeFollower: Sendable {
  private let feed: any ChangeFeed
  private let sessions: LiveSessions
  private let state: LockedValue<State>

  private struct State {
    /// The response of the active settings, always present. During a reload, the response of the new settings follows
    /// it.
    var responses: [ChangeResponse]
    var interval: Duration
  }

  /// - Parameters:
  ///   - sessions: The instance that the responses use.
  ///   - response: Handles each change.
  ///   - interval: The time between two reads of the feed without a notification. A revocation takes effect within
  ///     this time, and immediately if the store sends notifications.
  public init(
    _ feed: any ChangeFeed, sessions: LiveSessions, response: ChangeResponse, every interval: Duration
  ) {
    self.feed = feed
    self.sessions = sessions
    state = LockedValue(State(responses: [response], interval: interval))
  }

  /// Adds `response`: from now on it handles every change too. Must be called before requests are decided with the
  /// state that it keeps up to date.
  public func begin(_ response: ChangeResponse) { state.withLock { $0.responses.append(response) } }

  /// Makes `response` the only one and sets the interval at which the feed is read.
  public func settle(on response: ChangeResponse, every interval: Duration) {
    let closedSessions = state.withLock { state in
      defer { state = State(responses: [response], interval: interval) }
      return state.responses[0].closesSessions
    }
    // Closes the sessions of keys that were revoked while the settings did not close them.
    if response.closesSessions, !closedSessions { sessions.recheckEveryKey() }
  }

  /// Handles changes until the task is cancelled. Must be called once.
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

  /// Rechecks keys that changed while one of their sessions was being admitted. Each lookup is retried until the
  /// store answers, since no other code repeats it.
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
