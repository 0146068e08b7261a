public import ByteCoding
internal import Locking

/// The access to one console: a token for one sign-in, and the session that it opens.
///
/// Both are random and in the memory of this process alone, so they end with it.
public final class ConsoleAccess: Sendable {
  /// How long a session lasts.
  public static let sessionLifetime = Duration.seconds(12 * 3600)
  /// How long the token can be used.
  public static let tokenLifetime = Duration.seconds(600)

  /// A session of one browser.
  struct Session: Sendable {
    /// The secret in the cookie.
    let cookie: [UInt8]
    /// The secret in each form, which a page of another origin cannot read.
    let formToken: [UInt8]
    let endsAt: Timestamp
  }

  private enum State: Sendable {
    case waiting(token: [UInt8], until: Timestamp)
    case open(Session)
    case over
  }

  private let state: LockedValue<State>
  private let clock: WallClock
  /// The token for the printed address. It is shown once and used once.
  public let token: String

  public init(clock: WallClock = .system) {
    self.clock = clock
    let bytes = ConsoleSecret.make()
    token = String(decoding: bytes, as: UTF8.self)
    state = LockedValue(.waiting(token: bytes, until: clock.now().advanced(by: Self.tokenLifetime)))
  }

  /// Opens the session if `token` is the one that was printed, in time and for the first time. Check and use are one
  /// step: of several browsers with the token, one gets the session.
  func signIn(_ token: some Collection<UInt8>) -> Session? {
    let now = clock.now()
    return state.withLock { state in
      guard case .waiting(let expected, let end) = state, now < end, constantTimeEqual(Array(token), expected) else {
        return nil
      }
      let session = Session(
        cookie: ConsoleSecret.make(), formToken: ConsoleSecret.make(), endsAt: now.advanced(by: Self.sessionLifetime))
      state = .open(session)
      return session
    }
  }

  /// Returns the session with one of `cookies`; `nil` if there is none or it has ended.
  func session(of cookies: [String]) -> Session? {
    guard case .open(let session) = state.withLock(\.self), clock.now() < session.endsAt,
      cookies.contains(where: { constantTimeEqual(Array($0.utf8), session.cookie) })
    else { return nil }
    return session
  }

  /// Ends the session.
  func signOut() { state.withLock { $0 = .over } }

  /// Whether the console has no use any more: the session has ended, or the token was not used in time.
  public var isOver: Bool {
    let now = clock.now()
    return switch state.withLock(\.self) {
    case .waiting(_, let end): now >= end
    case .open(let session): now >= session.endsAt
    case .over: true
    }
  }

  /// Waits until the access is over or a signal arrives.
  public func waitForEnd(or signals: AsyncStream<Void>) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await _ in signals { return } }
      group.addTask {
        while !Task.isCancelled, !self.isOver { try? await Task.sleep(for: .seconds(1)) }
      }
      await group.next()
      group.cancelAll()
    }
  }
}
