internal import ByteCoding
internal import Cryptography
internal import Locking

/// The sessions of the people at a console over TLS, in the memory of this process alone.
final class ConsoleSessions: Sendable {
  /// The maximum number of sessions.
  static let most = 256
  /// The maximum number of sessions of one person.
  static let mostOfPerson = 8
  /// The cookies of a request that are looked at: a page of a subdomain cannot make the search long.
  private static let mostCookies = 4

  /// A session of one browser.
  struct Session: Sendable {
    /// The SHA-256 of the cookie. Its search takes a time that says nothing about the cookie.
    let id: [UInt8]
    /// The secret in each form.
    let formToken: [UInt8]
    let person: ConsolePerson
    let endsAt: Timestamp
  }

  private let sessions = LockedValue<[[UInt8]: Session]>([:])
  private let clock: WallClock

  init(clock: WallClock) { self.clock = clock }

  /// Opens a session and returns its cookie. The oldest session of the person ends if they have too many, and otherwise
  /// the oldest of all.
  func open(for person: ConsolePerson) -> [UInt8] {
    let now = clock.now()
    let cookie = ConsoleSecret.make()
    let session = Session(
      id: SHA256.hash(cookie), formToken: ConsoleSecret.make(), person: person,
      endsAt: now.advanced(by: ConsoleAccess.sessionLifetime))
    sessions.withLock { sessions in
      sessions = sessions.filter { now < $0.value.endsAt }
      let own = sessions.values.filter { $0.person.key == person.key }
      let leaving =
        own.count >= Self.mostOfPerson ? own : sessions.count >= Self.most ? Array(sessions.values) : []
      if let oldest = leaving.min(by: { $0.endsAt < $1.endsAt }) { sessions[oldest.id] = nil }
      sessions[session.id] = session
    }
    return cookie
  }

  /// Returns the session with one of `cookies`; `nil` if there is none or it has ended.
  func session(of cookies: [String]) -> Session? {
    let now = clock.now()
    let ids = cookies.prefix(Self.mostCookies).filter { $0.utf8.count == ConsoleSecret.length }.map {
      SHA256.hash(Array($0.utf8))
    }
    return sessions.withLock { sessions in
      for id in ids {
        guard let session = sessions[id] else { continue }
        if now < session.endsAt { return session }
        sessions[id] = nil
      }
      return nil
    }
  }

  /// Ends a session.
  func end(_ session: Session) { sessions.withLock { $0[session.id] = nil } }

  /// Ends the sessions of which `isOver` is true, and returns their people.
  func end(where isOver: (ConsolePerson) -> Bool) -> [ConsolePerson] {
    sessions.withLock { sessions in
      let leaving = sessions.values.filter { isOver($0.person) }
      for session in leaving { sessions[session.id] = nil }
      return leaving.map(\.person)
    }
  }

  /// The number of sessions that have not ended.
  var count: Int {
    let now = clock.now()
    return sessions.withLock { sessions in sessions.values.count { now < $0.endsAt } }
  }
}

/// Random secrets of a console.
enum ConsoleSecret {
  /// The length of a secret as text.
  static let length = 43

  /// 256 random bits in base64url.
  static func make() -> [UInt8] { Array(Base64URL.encode(SecureRandom.bytes(32)).utf8) }
}
