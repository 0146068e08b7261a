internal import ByteCoding
public import Commands

/// A console: decides about each request of a browser, and asks the pages of the service.
///
/// A cookie alone opens nothing that changes something. A request must name the console's own host and port, so that
/// a page whose name points to the loopback (DNS rebinding) gets nothing. A form must come from the console's own
/// origin, and have the token of the session, which only a page of this origin can read. The server must close
/// connections of users that the site does not serve, before it reads a request: `serves(_:)`.
public final class ConsoleSite: Sendable {
  /// Who may look at the console.
  private enum Entry: Sendable {
    /// The person who started it, on the loopback, with one session.
    case owner(ConsoleAccess, ConsoleRole)
    /// The people of the settings, over TLS.
    case people(ConsoleEntrance)
  }

  private let scheme: String
  /// The values of `Host` that name the console.
  private let hosts: [String]
  private let cookieName: String
  private let pages: any ConsolePages
  private let entry: Entry
  private let users: Set<UInt32>

  /// - Parameters:
  ///   - host: The exact host and port of the address, as in `127.0.0.1:4000`.
  ///   - users: Further users of this machine whose browsers may connect.
  public init(
    host: String, port: UInt16, pages: any ConsolePages, access: ConsoleAccess, role: ConsoleRole,
    users: Set<UInt32> = []
  ) {
    scheme = "http://"
    // Browsers leave out the default port (RFC 9110, section 4.2.3).
    hosts = ["\(host):\(port)"] + (port == 80 ? [host] : [])
    // Cookies belong to a host and not to a port: another console on this machine has another name.
    cookieName = "console-\(port)"
    entry = .owner(access, role)
    (self.pages, self.users) = (pages, users)
  }

  /// Creates a console over TLS for the people of the settings.
  ///
  /// - Parameters:
  ///   - host: The host of its address in lower case, an IPv6 address in brackets.
  ///   - port: The port of its address, which may be another one than that of the listener.
  public init(host: String, port: UInt16, pages: any ConsolePages, people: ConsolePeople) {
    scheme = "https://"
    let shown = port == 443 ? host : "\(host):\(port)"
    hosts = ["\(host):\(port)"] + (port == 443 ? [host] : [])
    cookieName = "__Host-console-\(port)"
    entry = .people(
      ConsoleEntrance(
        people: people, name: pages.name, origin: "https://" + shown, sessionCookie: cookieName,
        signInCookie: "__Host-console-sign-in-\(port)"))
    (self.pages, users) = (pages, [])
  }

  /// Whether connections of `user` are served. An unknown user is another one.
  ///
  /// Root is served: its programs can read the session from the memory of the browser anyway, and `sshd` forwards
  /// connections of root as root.
  public func serves(_ user: PeerUser) -> Bool {
    switch user {
    case .own, .root: true
    case .other(let id): users.contains(id)
    case .closed, .unknown: false
    }
  }

  /// Returns the answer to `request`, whose connection `serves` has accepted.
  public func answer(to request: ConsoleRequest) async -> ConsoleResponse {
    guard let host = request.field("Host"), isOwn(host.utf8.map(\.lowercasedASCII)) else {
      return .text(421, "The console answers at the address that it printed, and at no other host.")
    }
    switch request.method {
    case "GET": return await get(request)
    case "POST":
      guard let origin = request.field("Origin")?.utf8.map(\.lowercasedASCII), origin.starts(with: scheme.utf8),
        isOwn(origin.dropFirst(scheme.utf8.count)),
        // Older browsers send none.
        request.values(of: "Sec-Fetch-Site").isEmpty
          || request.field("Sec-Fetch-Site")?.hasSameBytes(as: "same-origin") == true
      else { return .text(403, "Only a page of the console can send this.") }
      switch entry {
      case .owner(let access, _) where request.path.hasSameBytes(as: "/session"): return signIn(request, access)
      case .people(let entrance) where request.path.hasSameBytes(as: ConsoleEntrance.certificatePath):
        if caller(of: request) != nil { return entrance.goOn(ConsoleForm(request.body)) }
        return entrance.signInByCertificate(request)
      case .owner, .people: return await perform(request)
      }
    default: return .text(405, "Use GET or POST here.", [("Allow", "GET, POST")])
    }
  }

  /// - Parameter host: In lowercase.
  private func isOwn(_ host: some Collection<UInt8>) -> Bool { hosts.contains { host.elementsEqual($0.utf8) } }

  // MARK: Sessions

  /// The session of a request.
  private struct Caller {
    let viewer: ConsoleViewer
    let formToken: [UInt8]
    let signOut: @Sendable () -> Void
  }

  /// Returns the session of `request`; `nil` if there is none.
  private func caller(of request: ConsoleRequest) -> Caller? {
    let cookies = request.cookies(cookieName)
    switch entry {
    case .owner(let access, let role):
      guard let session = access.session(of: cookies) else { return nil }
      return Caller(
        viewer: ConsoleViewer(role: role, formToken: String(decoding: session.formToken, as: UTF8.self)),
        formToken: session.formToken, signOut: { access.signOut() })
    case .people(let entrance):
      let people = entrance.people
      guard let caller = people.caller(cookies, request.certificate) else { return nil }
      let session = caller.session
      return Caller(
        viewer: ConsoleViewer(
          role: caller.role, formToken: String(decoding: session.formToken, as: UTF8.self), person: session.person.name),
        formToken: session.formToken,
        signOut: {
          people.sessions.end(session)
          people.report(.signedOut(session.person))
        })
    }
  }

  private func signInPage(for request: ConsoleRequest) -> ConsoleResponse {
    switch entry {
    case .owner: page(401, ConsoleLayout.signInPage(pages.name))
    case .people(let entrance): entrance.page(for: request)
    }
  }

  private func signIn(_ request: ConsoleRequest, _ access: ConsoleAccess) -> ConsoleResponse {
    guard let session = access.signIn(request.body) else {
      return .text(403, "This address was used before, or is too old. Run the console command again.")
    }
    let cookie =
      "\(cookieName)=\(String(decoding: session.cookie, as: UTF8.self)); HttpOnly; SameSite=Strict; Path=/; "
      + "Max-Age=\(ConsoleAccess.sessionLifetime.components.seconds)"
    return .text(200, "signed in", [("Set-Cookie", cookie)])
  }

  // MARK: Pages

  private func get(_ request: ConsoleRequest) async -> ConsoleResponse {
    switch request.path {
    case "/console.css": return ConsoleResponse(200, "text/css; charset=utf-8", ConsoleStyle.text)
    case "/console.js": return ConsoleResponse(200, "text/javascript; charset=utf-8", ConsoleScript.text)
    case "/icon.svg": return ConsoleResponse(200, "image/svg+xml", ConsoleLayout.icon)
    default: break
    }
    if case .people(let entrance) = entry {
      switch request.path {
      case ConsoleEntrance.providerPath:
        if caller(of: request) != nil { return entrance.goOn(ConsoleForm((request.query ?? "").utf8)) }
        return await entrance.begin(request)
      case ConsoleEntrance.callbackPath: return await entrance.finish(request)
      default: break
      }
    }
    guard let viewer = caller(of: request)?.viewer else { return signInPage(for: request) }
    guard let query = ConsoleForm((request.query ?? "").utf8) else {
      return page(
        400,
        layout(viewer, request).fault(ConsoleFault(400, "The address has a query that is too long or malformed.")))
    }
    let (path, format) = Self.parts(of: request.path)
    do throws(ConsoleFault) {
      // Before the service is asked.
      if format != .page { try checkRole(pages.exportRole, of: viewer) }
      guard let page = try await pages.page(at: path, query, for: viewer) else {
        throw ConsoleFault(404, "There is no page at this address.")
      }
      return try answer(
        page, as: format, query, layout(viewer, request), isPart: request.field("X-Console-Part") != nil)
    } catch {
      if request.field("X-Console-Part") != nil {
        // The page stays and shows the fault, until the service answers again.
        return ConsoleResponse(error.status, Self.html, ConsoleLayout.notice(error).text)
      }
      return page(error.status, layout(viewer, request).fault(error, isPassing: error.isPassing))
    }
  }

  private func checkRole(_ least: ConsoleRole, of viewer: ConsoleViewer) throws(ConsoleFault) {
    guard viewer.role < least else { return }
    guard viewer.person == nil else {
      throw ConsoleFault(403, "Your role is \(viewer.role.rawValue): this needs the role \(least.rawValue).")
    }
    throw ConsoleFault(
      403, "This console has the role \(viewer.role.rawValue): start it with --role \(least.rawValue).")
  }

  private func layout(_ viewer: ConsoleViewer, _ request: ConsoleRequest) -> ConsoleLayout {
    ConsoleLayout(pages: pages, viewer: viewer, path: request.path, query: request.query)
  }

  private enum Format { case page, csv, json }

  private static func parts(of path: String) -> (path: String, format: Format) {
    for (suffix, format) in [(".csv", Format.csv), (".json", .json)] where path.hasSuffix(suffix) {
      return (String(path.dropLast(suffix.count)), format)
    }
    return (path, .page)
  }

  static let html = "text/html; charset=utf-8"

  private func page(_ status: Int, _ document: String) -> ConsoleResponse {
    ConsoleResponse(status, Self.html, document)
  }

  private func answer(
    _ page: ConsolePage, as format: Format, _ query: ConsoleForm, _ layout: ConsoleLayout, isPart: Bool
  ) throws(ConsoleFault) -> ConsoleResponse {
    switch format {
    case .page:
      if isPart { return ConsoleResponse(200, Self.html, page.content.text) }
      let done = query["done"].flatMap { name in page.acts.first { $0.name.hasSameBytes(as: name) }?.done }
      return self.page(200, layout.document(page, done: done))
    case .csv:
      guard let table = page.table else { throw ConsoleFault(404, "This page has no table.") }
      return file(table.csv, "text/csv; charset=utf-8", page, "csv")
    case .json:
      guard let json = page.json else { throw ConsoleFault(404, "This page has no data in JSON.") }
      return file(json, "application/json", page, "json")
    }
  }

  private func file(_ text: String, _ type: String, _ page: ConsolePage, _ ending: String) -> ConsoleResponse {
    let name = page.title.lowercased().map { $0.isASCII && $0.isLetter ? $0 : "-" }
    return ConsoleResponse(
      200, type, text, [("Content-Disposition", "attachment; filename=\"\(String(name)).\(ending)\"")])
  }

  // MARK: Acts

  private func perform(_ request: ConsoleRequest) async -> ConsoleResponse {
    guard let caller = caller(of: request) else { return signInPage(for: request) }
    let viewer = caller.viewer
    let layout = layout(viewer, request)
    func refusal(_ status: Int, _ text: String) -> ConsoleResponse {
      page(status, layout.fault(ConsoleFault(status, text)))
    }
    let type = request.field("Content-Type")?.utf8.prefix { $0 != UInt8(ascii: ";") }.map(\.lowercasedASCII)
    guard type?.elementsEqual("application/x-www-form-urlencoded".utf8) == true, let form = ConsoleForm(request.body)
    else {
      return refusal(400, "The form is too long or malformed.")
    }
    guard let token = form["token"], constantTimeEqual(Array(token.utf8), caller.formToken) else {
      return refusal(403, "The form has no valid token. Reload the page, and try again.")
    }
    if request.path.hasSameBytes(as: "/sign-out") {
      caller.signOut()
      var answer = page(200, ConsoleLayout.signedOutPage(pages.name, isOver: viewer.person == nil))
      let secure = scheme == "https://" ? "Secure; " : ""
      answer.fields.append(("Set-Cookie", "\(cookieName)=; \(secure)HttpOnly; SameSite=Strict; Path=/; Max-Age=0"))
      return answer
    }
    guard let act = pages.acts.first(where: { request.path.hasSameBytes(as: "/act/\($0.name)") }) else {
      return refusal(404, "There is no such act.")
    }
    do throws(ConsoleFault) {
      try checkRole(act.role, of: viewer)
      try await pages.perform(act, form, for: viewer)
    } catch {
      return page(error.status, layout.fault(error))
    }
    let back = form["back"].flatMap(Self.ownPath) ?? "/"
    return ConsoleResponse(
      303, "text/plain; charset=utf-8", "done\n",
      [("Location", Self.address(of: back, after: act))])
  }

  /// Returns `back` with the field `done` in its query. A query that would be refused is left out.
  private static func address(of back: String, after act: ConsoleAct) -> String {
    let halves = back.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let done = "done=\(act.name)"
    let others = (halves.count == 2 ? halves[1] : "").split(separator: "&").filter {
      $0 != "done" && !$0.hasPrefix("done=")
    }
    let query = (others.map(String.init) + [done]).joined(separator: "&")
    return halves[0] + "?" + (ConsoleForm(query.utf8) == nil ? done : query)
  }

  /// Returns `path` if it leads to a page of this console; `nil` for other addresses and for a header of its own.
  static func ownPath(_ path: String) -> String? {
    let isPlain = path.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: Array("/-_.?=&%".utf8).contains(byte)
      }
    }
    return isPlain && path.hasPrefix("/") && !path.hasPrefix("//") ? path : nil
  }
}
