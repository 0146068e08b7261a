internal import ByteCoding
internal import Foundation
internal import Commands

/// A request to the port that waits for the browser, as far as the rules look at it.
struct LoopbackVisit: Sendable {
  var method = "GET"
  /// Path and query.
  var target: String
  var hosts: [String]
  /// `Sec-Fetch-Mode`, which browsers send.
  var modes: [String] = []
  /// `Sec-Purpose` and `Purpose`, which browsers send with a request for a page before the user opens it.
  var purposes: [String] = []
  var cookies: [String] = []
  var user: PeerUser
}

/// The visits to the port of one sign-in, and what follows from each: first one of the short address, then one redirect
/// of the provider. A value, so that every order of visits can be tried without a socket.
///
/// The address of the provider's page has `state`, `nonce` and `code_challenge`. Another user of the machine who knows
/// them can get a code for an account of their own and bring it to the port. So no program gets that address as an
/// argument, which every user can read: the browser gets a short address of this port that works once, and is redirected.
/// Other users' connections are refused where the kernel names their user, and so are those that are closed already:
/// their user is unknown, and no browser reads the answer. Where the kernel does not name the user of an open connection,
/// the redirect must carry the cookie that the visitor of the short address got.
struct LoopbackVisits: Sendable {
  /// What to do with a visit.
  enum Step: Sendable, Hashable {
    /// Send the browser to the provider, with a cookie.
    case proceed
    /// It is the redirect that was waited for.
    case accept(URL)
    /// Refuse it, and go on waiting.
    case refuse(Refusal)
    /// Refuse it, and end the sign-in: another person may take part in it.
    case end(Refusal)
  }

  /// Why a visit is refused.
  enum Refusal: Sendable, Hashable {
    /// Another path, host or method, or a script's request.
    case foreign
    /// A connection of another user of the machine.
    case otherUser(UInt32)
    /// A redirect without the `state` of this sign-in.
    case state
    /// A redirect after the one that counts.
    case second
    /// The short address, which was visited before.
    case addressUsed
    /// The right `state` from a browser that has not visited the short address.
    case browser
  }

  /// Where the provider sends the browser.
  let redirectURI: String
  private let expected: URLComponents?
  /// The path of the short address.
  let startPath: String
  let cookieName: String
  private let cookieValue: String
  private var isStarted = false
  private var isOver = false
  /// The number of redirects with another `state`. They are waited past, however many: anybody can send them.
  private(set) var strangeStates = 0
  private var isAnswer: @Sendable (URL) -> Bool = { _ in false }
  private var isBegun = false

  /// - Parameter secrets: Three random texts of letters, digits, `-` and `_`: for the address, and for the name and the
  ///   value of the cookie.
  init(redirectURI: String, secrets: (address: String, name: String, value: String)) {
    self.redirectURI = redirectURI
    expected = URLComponents(string: redirectURI)
    startPath = "/start/" + secrets.address
    cookieName = "bearer-" + secrets.name
    cookieValue = secrets.value
  }

  /// The short address, at the host of the redirect: cookies belong to a host.
  var startAddress: String { "\(expected?.scheme ?? "http")://\(authority)\(startPath)" }

  private var authority: String {
    let host = expected?.percentEncodedHost ?? ""
    return expected?.port.map { "\(host):\($0)" } ?? host
  }

  private var redirectPath: String { expected.map(\.percentEncodedPath).flatMap { $0.isEmpty ? nil : $0 } ?? "/" }

  /// The field that sets the cookie. It goes to the redirect alone, and no script can read it.
  var cookieField: String {
    "\(cookieName)=\(cookieValue); Path=\(redirectPath); Max-Age=3600; HttpOnly; SameSite=Lax"
  }

  /// The field that removes the cookie.
  var cookieRemoval: String { "\(cookieName)=; Path=\(redirectPath); Max-Age=0; HttpOnly; SameSite=Lax" }

  /// Begins to wait for the visits. `isAnswer` says whether a redirect has the `state` of this sign-in.
  mutating func begin(_ isAnswer: @escaping @Sendable (URL) -> Bool) {
    self.isAnswer = isAnswer
    isBegun = true
  }

  /// Accepts no redirect from now on.
  mutating func end() { isOver = true }

  /// What follows from `visit`.
  mutating func step(after visit: LoopbackVisit) -> Step {
    if case .other(let uid) = visit.user { return .refuse(.otherUser(uid)) }
    guard visit.user != .closed, isBegun, let url = navigation(visit) else { return .refuse(.foreign) }
    let path = url.path(percentEncoded: true)
    if Array(path.utf8) == Array(startPath.utf8), url.query(percentEncoded: true) == nil { return start(visit) }
    guard Array(path.utf8) == Array(redirectPath.utf8) else { return .refuse(.foreign) }
    guard !isOver else { return .refuse(.second) }
    guard isAnswer(url) else {
      strangeStates &+= 1
      return .refuse(.state)
    }
    // Of the user's own programs, some keep no cookies.
    guard visit.user == .own || hasCookie(visit) else { return over(.browser) }
    isOver = true
    return .accept(url)
  }

  private mutating func start(_ visit: LoopbackVisit) -> Step {
    // A browser that looks ahead would use the address up.
    guard visit.purposes.isEmpty else { return .refuse(.foreign) }
    guard !isStarted, !isOver else { return isOver ? .refuse(.addressUsed) : over(.addressUsed) }
    isStarted = true
    return .proceed
  }

  private mutating func over(_ refusal: Refusal) -> Step {
    isOver = true
    return .end(refusal)
  }

  /// The URL of a browser's navigation to this port; `nil` for any other request.
  private func navigation(_ visit: LoopbackVisit) -> URL? {
    guard visit.method == "GET", visit.hosts == [authority],
      // Browsers say so of a request by a script or an image. A navigation is what a person or a provider causes.
      visit.modes.allSatisfy({ $0 == "navigate" }),
      visit.target.hasPrefix("/")
    else { return nil }
    return URL(string: "\(expected?.scheme ?? "http")://\(authority)\(visit.target)")
  }

  private func hasCookie(_ visit: LoopbackVisit) -> Bool {
    let pair = Array("\(cookieName)=\(cookieValue)".utf8)
    return visit.cookies.contains { field in
      field.utf8.split(separator: UInt8(ascii: ";")).contains { part in
        constantTimeEqual(Array(part.drop { $0 == UInt8(ascii: " ") }), pair)
      }
    }
  }
}

extension LoopbackVisits.Refusal {
  /// The code of the warning or the error.
  var code: String {
    switch self {
    case .foreign: "foreign_request"
    case .otherUser: "other_user"
    case .state: "stray_redirect"
    case .second: "second_request"
    case .addressUsed: "address_used"
    case .browser: "foreign_browser"
    }
  }

  /// What came to the port: the rest of a sentence.
  var what: String {
    switch self {
    case .foreign: "a request for something else"
    case .otherUser(let uid): "a request of another user of this machine (uid \(uid))"
    case .state: "a redirect without the state of this sign-in"
    case .second: "a second answer"
    case .addressUsed: "a second visit of the address that works once"
    case .browser: "the answer of the provider, in a browser that did not begin this sign-in"
    }
  }

  /// The status of the answer.
  var status: Int {
    switch self {
    case .foreign: 404
    case .otherUser, .browser: 403
    case .state: 400
    case .second, .addressUsed: 410
    }
  }

  /// What the visitor reads.
  var page: String {
    switch self {
    case .foreign, .otherUser, .second: "This address is not for you."
    case .state: "This answer does not belong to the sign-in that waits here."
    case .addressUsed: "This address was used before, by you or by somebody else. The terminal has more."
    case .browser:
      "This browser did not begin the sign-in, or keeps no cookies of 127.0.0.1 and localhost. The terminal has more."
    }
  }

  /// What to do when the sign-in ended for this reason.
  var hint: String {
    switch self {
    case .addressUsed:
      "begin again, and open the address once; if it happens again, another user of this machine visits it: use "
        + "`bearer login --paste`"
    case .browser:
      "begin again in a browser that keeps cookies; if it happens again, another user of this machine takes part: use "
        + "`bearer login --paste`"
    case .foreign, .otherUser, .state, .second: "begin again, in one window of the browser"
    }
  }
}
