internal import ByteCoding
internal import Cryptography
internal import Locking

/// The sign-ins at a provider that browsers have begun.
///
/// What a sign-in began with is in a cookie of the browser, sealed with a key of this process. So a sign-in is bound to the
/// browser that began it, and strangers who begin sign-ins use no memory here.
final class ConsoleSignIns: Sendable {
  /// The time from the beginning of a sign-in to the redirect.
  static let lifetime = Duration.seconds(600)
  /// The maximum number of finished sign-ins that are remembered, so that none is used twice. More are refused.
  static let mostFinished = 4096

  /// A sign-in of one browser.
  struct Begun: Sendable {
    let request: ConsoleSignInRequest
    /// The path to which the browser goes afterward.
    let back: String
    let endsAt: Timestamp
  }

  private let key = SecureRandom.bytes(32)
  private let clock: WallClock
  /// The states of finished sign-ins, and when their cookies end.
  private let finished = LockedValue<[[UInt8]: Timestamp]>([:])

  init(clock: WallClock) { self.clock = clock }

  func begin(redirect: String, back: String) -> Begun {
    func secret() -> String { String(decoding: ConsoleSecret.make(), as: UTF8.self) }
    return Begun(
      request: ConsoleSignInRequest(redirect: redirect, state: secret(), nonce: secret(), verifier: secret()),
      back: back, endsAt: clock.now().advanced(by: Self.lifetime))
  }

  /// Returns the value of the cookie for a sign-in at the provider `issuer`: a code of another one, after a reload, must not
  /// go to it.
  func seal(_ begun: Begun, at issuer: String) -> String {
    let request = begun.request
    let parts = [
      request.state, request.nonce, request.verifier, Base64URL.encode(Array(begun.back.utf8)),
      "\(begun.endsAt.seconds)",
    ]
    let text = parts.joined(separator: ".")
    return text + "." + Base64URL.encode(code(text, issuer))
  }

  /// The code of a cookie for a sign-in at `issuer`. The text has no line end.
  private func code(_ text: some StringProtocol, _ issuer: String) -> [UInt8] {
    HMACSHA256.authenticate(Array("\(text)\n\(issuer)".utf8), key: key)
  }

  /// Returns the sign-in at `issuer` of which the browser has the cookie and the redirect the state; `nil` if there is none,
  /// or it was too long ago.
  func begun(_ cookies: [String], state: String, redirect: String, at issuer: String) -> Begun? {
    cookies.prefix(2).compactMap { open($0, redirect: redirect, issuer) }.first {
      constantTimeEqual(Array($0.request.state.utf8), Array(state.utf8)) && clock.now() < $0.endsAt
    }
  }

  private func open(_ cookie: String, redirect: String, _ issuer: String) -> Begun? {
    guard cookie.utf8.count <= 2048, let dot = cookie.utf8.lastIndex(of: UInt8(ascii: ".")),
      let given = Base64URL.decode(cookie[cookie.utf8.index(after: dot)...])
    else { return nil }
    let text = cookie[..<dot]
    guard constantTimeEqual(given, code(text, issuer)) else { return nil }
    // The seal is of this process: the parts are as they were written.
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 5, let seconds = Int64(parts[4]), let back = Base64URL.decode(parts[3]) else { return nil }
    return Begun(
      request: ConsoleSignInRequest(redirect: redirect, state: parts[0], nonce: parts[1], verifier: parts[2]),
      back: String(decoding: back, as: UTF8.self), endsAt: Timestamp(seconds: seconds))
  }

  /// Uses up a sign-in. Returns `false` if it was used before. Of two callers with one sign-in, one gets `true`.
  func finish(_ begun: Begun) -> Bool {
    let now = clock.now()
    let state = Array(begun.request.state.utf8)
    return finished.withLock { finished in
      if finished.count >= Self.mostFinished { finished = finished.filter { now < $0.value } }
      guard finished.count < Self.mostFinished, finished[state] == nil else { return false }
      finished[state] = begun.endsAt
      return true
    }
  }
}
