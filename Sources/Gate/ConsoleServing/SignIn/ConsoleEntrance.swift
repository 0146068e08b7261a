internal import ByteCoding

/// The sign-in pages of a console over TLS.
///
/// A session cookie is `SameSite=Strict`, so that no request of another site comes with it. The redirect of a provider is
/// such a request: it has the cookie of the sign-in alone, which is `Lax`. Its answer is a page that goes on to the console
/// by itself, because browsers count a redirect in its place as a request of the other site, too.
struct ConsoleEntrance: Sendable {
  let people: ConsolePeople
  let name: String
  /// The scheme, host and port of the console.
  let origin: String
  let sessionCookie: String
  let signInCookie: String

  static let providerPath = "/sign-in/provider"
  static let callbackPath = "/sign-in/callback"
  static let certificatePath = "/sign-in/certificate"

  private var redirect: String { origin + Self.callbackPath }

  /// The page for a browser without a session.
  func page(for request: ConsoleRequest, fault: ConsoleFault? = nil) -> ConsoleResponse {
    let rules = people.rules
    let here = request.path + (request.query.map { "?" + $0 } ?? "")
    let back = request.path.hasPrefix("/sign-in/") ? "/" : ConsoleSite.ownPath(here) ?? "/"
    let notice: HTML = fault.map(ConsoleLayout.notice) ?? .nothing
    let content: HTML = """
      \(notice)
      \(rules.acceptsCertificates ? certificateOffer(request, back, rules) : .nothing)
      \(rules.provider.map { providerOffer($0, back) } ?? .nothing)
      """
    return ConsoleResponse(
      fault?.status ?? 401, ConsoleSite.html,
      ConsoleLayout.lonePage("Sign in · \(name)", name, content, isSignIn: fault == nil))
  }

  private func certificateOffer(_ request: ConsoleRequest, _ back: String, _ rules: ConsolePeople.Rules) -> HTML {
    guard let certificate = people.valid(request.certificate) else {
      return """
        <p>Your browser has sent no client certificate for this console. Import yours, close all windows of the browser, \
        and open the page again.</p>
        """
    }
    guard let person = ConsolePerson(certificate: certificate.subject), let role = rules.role(of: person) else {
      return """
        <p>The certificate <code>\(Shown.text(certificate.subject))</code> has no role at this console. Ask an \
        administrator for an entry in <code>admin.console.people</code>.</p>
        """
    }
    return """
      <form method="post" action="\(Self.certificatePath)"><input type="hidden" name="back" value="\(back)">\
      <p>Your certificate: <code>\(person.name)</code>, role \(role.rawValue)</p>\
      <p><button>Sign in with this certificate</button></p></form>
      """
  }

  private func providerOffer(_ provider: any ConsoleProvider, _ back: String) -> HTML {
    let address = Self.providerPath + ConsoleForm.query([("back", back)])
    return """
      <p><a class="button" href="\(address)">Sign in at \(Shown.text(provider.issuer))</a></p>
      """
  }

  // MARK: Signing in

  /// Leads a browser that has a session, in another tab for example, to the page that it wanted. A second session would
  /// leave the first one open, which no browser could sign out of.
  func goOn(_ form: ConsoleForm?) -> ConsoleResponse {
    ConsoleResponse(303, "text/plain; charset=utf-8", "signed in\n", [("Location", Self.back(form))])
  }

  private static func back(_ form: ConsoleForm?) -> String { form?["back"].flatMap(ConsoleSite.ownPath) ?? "/" }

  /// Signs in the owner of the certificate of the connection.
  func signInByCertificate(_ request: ConsoleRequest) -> ConsoleResponse {
    let rules = people.rules
    guard rules.acceptsCertificates, let certificate = people.valid(request.certificate) else {
      return page(for: request, fault: ConsoleFault(403, "This connection has no client certificate."))
    }
    guard let person = ConsolePerson(certificate: certificate.subject), let role = rules.role(of: person) else {
      people.report(.withoutRole(Shown.text(String(certificate.subject.prefix(200))), address: request.address))
      return page(for: request, fault: ConsoleFault(403, "This certificate has no role at this console."))
    }
    people.report(.signedIn(person, role, address: request.address))
    let back = Self.back(ConsoleForm(request.body))
    return ConsoleResponse(
      303, "text/plain; charset=utf-8", "signed in\n",
      [("Location", back), ("Set-Cookie", sessionCookie(people.sessions.open(for: person)))])
  }

  /// Sends the browser to the provider.
  func begin(_ request: ConsoleRequest) async -> ConsoleResponse {
    // A link of another site must not begin a sign-in that a person does not expect, nor must the script of the page that
    // it gets instead. Older browsers do not say.
    guard let provider = people.rules.provider,
      request.values(of: "Sec-Fetch-Site").allSatisfy({ $0.hasSameBytes(as: "same-origin") }),
      request.values(of: "Sec-Fetch-Mode").allSatisfy({ $0.hasSameBytes(as: "navigate") })
    else { return page(for: request) }
    let back = Self.back(ConsoleForm((request.query ?? "").utf8))
    let begun = people.signIns.begin(redirect: redirect, back: back)
    do throws(ConsoleFault) {
      let address = try await people.exchange(for: request.address) { () async throws(ConsoleFault) in
        try await provider.address(of: begun.request)
      }
      return ConsoleResponse(
        303, "text/plain; charset=utf-8", "to the provider\n",
        [
          ("Location", address),
          (
            "Set-Cookie",
            cookie(signInCookie, people.signIns.seal(begun, at: provider.issuer), ConsoleSignIns.lifetime, "Lax")
          ),
        ])
    } catch {
      people.report(.providerRefused(reason: error.text, address: request.address))
      return page(for: request, fault: error)
    }
  }

  /// Answers the redirect of the provider.
  func finish(_ request: ConsoleRequest) async -> ConsoleResponse {
    guard let provider = people.rules.provider else { return page(for: request) }
    // Codes of some providers have more than a thousand bytes.
    let form = ConsoleForm((request.query ?? "").utf8, mostBytes: 4096)
    guard let form, let state = form["state"],
      let begun = people.signIns.begun(
        request.cookies(signInCookie), state: state, redirect: redirect, at: provider.issuer)
    else {
      return page(
        for: request,
        fault: ConsoleFault(
          403, "This browser has begun no such sign-in within the last 10 minutes.", hint: "Sign in again."))
    }
    guard let code = form["code"] else {
      let reason = Shown.text(String((form["error"] ?? "no reason").prefix(64)))
      return done(
        page(
          for: request, fault: ConsoleFault(403, "The provider refuses the sign-in: \(reason).", hint: "Sign in again.")
        ))
    }
    do throws(ConsoleFault) {
      let person = try await people.exchange(for: request.address) { () async throws(ConsoleFault) in
        try await provider.person(code, for: begun.request, from: form["iss"])
      }
      return done(try signIn(person, begun, request))
    } catch {
      people.report(.providerRefused(reason: error.text, address: request.address))
      return done(page(for: request, fault: error))
    }
  }

  private func signIn(
    _ person: ConsolePerson, _ begun: ConsoleSignIns.Begun, _ request: ConsoleRequest
  ) throws(ConsoleFault) -> ConsoleResponse {
    guard people.signIns.finish(begun) else {
      throw ConsoleFault(403, "This sign-in was used before.", hint: "Sign in again.")
    }
    guard let role = people.rules.role(of: person) else {
      people.report(.withoutRole(person.name, address: request.address))
      return page(
        for: request,
        fault: ConsoleFault(
          403, "\(person.name) has no role at this console.",
          hint: "Ask an administrator for a group of admin.console.oidc.groups, and sign in again."))
    }
    people.report(.signedIn(person, role, address: request.address))
    let content: HTML = """
      <p role="status">Signed in as \(person.name). <a href="\(begun.back)">Continue</a></p>
      """
    return ConsoleResponse(
      200, ConsoleSite.html, ConsoleLayout.lonePage("Signed in · \(name)", name, content, next: begun.back),
      [("Set-Cookie", sessionCookie(people.sessions.open(for: person)))])
  }

  /// Returns `response` with the cookie of the sign-in removed: it is over, whatever came of it.
  private func done(_ response: ConsoleResponse) -> ConsoleResponse {
    var response = response
    response.fields.append(("Set-Cookie", cookie(signInCookie, "", .zero, "Lax")))
    return response
  }

  // MARK: Cookies

  private func sessionCookie(_ secret: [UInt8]) -> String {
    cookie(sessionCookie, String(decoding: secret, as: UTF8.self), ConsoleAccess.sessionLifetime, "Strict")
  }

  /// Browsers accept the prefix `__Host-` only from this host, over TLS and for all paths, so that no subdomain can set
  /// such a cookie (RFC 6265bis, section 4.1.3.2).
  private func cookie(_ name: String, _ value: String, _ lifetime: Duration, _ site: String) -> String {
    "\(name)=\(value); Secure; HttpOnly; SameSite=\(site); Path=/; Max-Age=\(lifetime.components.seconds)"
  }
}
