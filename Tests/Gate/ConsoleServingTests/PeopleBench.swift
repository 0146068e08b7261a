import ByteCoding
import ConsoleServing
import Locking

/// A provider that names a person for each code, and counts what it was asked.
final class ExampleProvider: ConsoleProvider {
  let issuer: String
  /// The subject and the groups for each code.
  let accounts: [String: (subject: String, groups: [String])]
  let exchanged = LockedValue<[String]>([])
  let nonces = LockedValue<[String]>([])
  /// Is passed before each answer.
  let latch = Latch()

  init(_ accounts: [String: (subject: String, groups: [String])], issuer: String = "https://id.example") {
    (self.accounts, self.issuer) = (accounts, issuer)
  }

  func address(of request: ConsoleSignInRequest) async throws(ConsoleFault) -> String {
    nonces.withLock { $0.append(request.nonce) }
    return "\(issuer)/authorize?state=\(request.state)"
  }

  func person(
    _ code: String, for request: ConsoleSignInRequest, from issuer: String?
  ) async throws(ConsoleFault) -> ConsolePerson {
    exchanged.withLock { $0.append(code) }
    await latch.pass()
    guard let account = accounts[code],
      let person = ConsolePerson(
        issuer: self.issuer, subject: account.subject, name: account.subject, groups: account.groups)
    else { throw ConsoleFault(403, "The provider knows no such code.") }
    return person
  }
}

/// Open from the beginning, unless it is closed.
final class Latch: Sendable {
  /// `nil` while it is open.
  private let waiting = LockedValue<[CheckedContinuation<Void, Never>]?>(nil)

  func close() { waiting.withLock { $0 = $0 ?? [] } }

  func open() {
    let all = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting ?? []
    }
    for continuation in all { continuation.resume() }
  }

  /// Waits until it is open.
  func pass() async {
    await withCheckedContinuation { continuation in
      let isOpen = waiting.withLock { waiting in
        waiting?.append(continuation)
        return waiting == nil
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// A console at https://console.example:7443 and its browsers.
final class PeopleBench: Sendable {
  static let sessionCookie = "__Host-console-7443"
  static let signInCookie = "__Host-console-sign-in-7443"

  let pages = ExamplePages(exportRole: .view)
  let provider: ExampleProvider
  let people: ConsolePeople
  let events = LockedValue<[String]>([])
  private let site: ConsoleSite
  private let instant = LockedValue(Timestamp(seconds: 1_800_000_000))

  static func rules(
    subjects: [(String, ConsoleRole)] = [("CN=ada", .admin), ("CN=bob", .view)],
    groups: [(String, ConsoleRole)] = [("staff", .view), ("support", .support)], provider: ExampleProvider,
    acceptsCertificates: Bool = true, issuer: String = "https://id.example"
  ) -> ConsolePeople.Rules {
    ConsolePeople.Rules(
      acceptsCertificates: acceptsCertificates, provider: provider,
      directory: ConsoleDirectory(
        subjects: subjects.map { .init($0.0, $0.1) }, issuer: issuer, groups: groups.map { .init($0.0, $0.1) }))
  }

  init(_ accounts: [String: (subject: String, groups: [String])] = ["code": ("eva", ["staff", "support"])]) {
    provider = ExampleProvider(accounts)
    people = ConsolePeople(
      Self.rules(provider: provider), clock: WallClock { [instant] in instant.withLock(\.self) },
      report: { [events] event in events.withLock { $0.append(Self.text(event)) } })
    site = ConsoleSite(host: "console.example", port: 7443, pages: pages, people: people)
  }

  private static func text(_ event: ConsolePeople.Event) -> String {
    switch event {
    case .signedIn(let person, let role, let address): "in \(person.name) \(role.rawValue) \(address ?? "-")"
    case .signedOut(let person): "out \(person.name)"
    case .lostRole(let person): "lost \(person.name)"
    case .withoutRole(let name, _): "none \(name)"
    case .providerRefused(let reason, _): "refused \(reason)"
    }
  }

  func advance(by duration: Duration) { instant.withLock { $0 = $0.advanced(by: duration) } }

  /// Sends a request over a connection with the certificate of `subject`.
  func send(
    _ method: String, _ target: String, _ changes: [String: String] = [:], as subject: String? = nil,
    cookie: String? = nil, body: String = "", address: String = "192.0.2.7"
  ) async -> ConsoleResponse {
    var fields = ["Host": "console.example:7443"]
    if method == "POST" {
      fields["Origin"] = "https://console.example:7443"
      fields["Content-Type"] = "application/x-www-form-urlencoded"
    }
    fields["Cookie"] = cookie
    for (name, value) in changes { fields[name] = value.isEmpty ? nil : value }
    let parts = target.split(separator: "?", maxSplits: 1)
    // The certificates end 24 hours after the beginning.
    let end = Timestamp(seconds: 1_800_000_000 + 24 * 3600)
    return await site.answer(
      to: ConsoleRequest(
        method: method, path: String(parts.first ?? "/"), query: parts.count > 1 ? String(parts[1]) : nil,
        fields: fields.map { ($0.key, $0.value) }, body: Array(body.utf8),
        certificate: subject.map { ConsoleCertificate(subject: $0, expiresAt: end) }, address: address))
  }

  /// Signs in by certificate and returns the field `Cookie` of the browser.
  func signIn(as subject: String) async -> String? {
    await send("POST", "/sign-in/certificate", as: subject).cookie(Self.sessionCookie)
  }

  /// Begins a sign-in at the provider and returns its state and the field `Cookie` of the browser.
  func begin(_ back: String = "/") async -> (state: String, cookie: String)? {
    let answer = await send("GET", "/sign-in/provider?back=\(back)")
    guard let state = answer.first("Location")?.split(separator: "=").last.map(String.init),
      let cookie = answer.cookie(Self.signInCookie)
    else { return nil }
    return (state, cookie)
  }

  /// Returns the token of the forms on the page for `cookie`.
  func formToken(_ cookie: String, as subject: String? = nil) async -> String? {
    let page = await send("GET", "/list", as: subject, cookie: cookie).text
    return page.firstMatch(of: /name="token" value="([^"]+)"/).map { String($0.output.1) }
  }
}

extension ConsoleResponse {
  /// The field `Cookie` of a browser that keeps the cookie `name` of this answer; `nil` if it is not set.
  func cookie(_ name: String) -> String? {
    fields.filter { $0.name == "Set-Cookie" && $0.value.hasPrefix(name + "=") }.map {
      String($0.value.prefix { $0 != ";" })
    }.first { $0 != name + "=" }
  }
}
