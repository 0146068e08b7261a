import ConsoleServing
import Locking
import Testing

@Suite("The people at a console over TLS")
struct ConsolePeopleTests {
  @Test("A certificate with a role opens a session, whose cookie belongs to this host, to TLS and to no script")
  func certificate() async throws {
    let bench = PeopleBench()
    let page = await bench.send("GET", "/list", as: "CN=ada")
    #expect(page.status == 401 && page.text.contains("CN=ada") && page.text.contains(#"name="back" value="/list""#))
    let answer = await bench.send("POST", "/sign-in/certificate", as: "CN=ada", body: "back=/list")
    #expect(answer.status == 303 && answer.first("Location") == "/list")
    let cookie = try #require(answer.first("Set-Cookie"))
    #expect(cookie.hasPrefix("__Host-console-7443="))
    for attribute in ["Secure", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
      #expect(cookie.contains("; " + attribute), "\(cookie)")
    }
    #expect(!cookie.contains("Domain"))
    let list = await bench.send("GET", "/list", as: "CN=ada", cookie: answer.cookie(PeopleBench.sessionCookie))
    #expect(list.status == 200 && list.text.contains("CN=ada · role admin"))
    #expect(bench.events.withLock(\.self) == ["in CN=ada admin 192.0.2.7"])
  }

  @Test(
    "No certificate, one without a role, and one whose name only looks alike open no session",
    arguments: [nil, "CN=eve", "CN=ada,O=x", "cn=ada", "CN=аda", "CN=ada\u{301}", ""])
  func withoutRole(_ subject: String?) async {
    let bench = PeopleBench()
    for path in ["/", "/list", "/list.csv", "/list.json", "/none"] {
      let answer = await bench.send("GET", path, as: subject)
      #expect(answer.status == 401 && !answer.text.contains("start") && !answer.text.contains("token"))
    }
    let answer = await bench.send("POST", "/sign-in/certificate", as: subject)
    #expect(answer.status == 403 && answer.first("Set-Cookie") == nil)
    #expect(bench.people.sessionCount == 0)
  }

  @Test("Equivalent spellings of one name in Unicode are two names")
  func spellings() async {
    let bench = PeopleBench()
    bench.people.replace(PeopleBench.rules(subjects: [("CN=\u{E9}va", .admin)], provider: bench.provider))
    #expect(await bench.signIn(as: "CN=e\u{301}va") == nil)
    #expect(await bench.signIn(as: "CN=\u{E9}va") != nil)
  }

  @Test("A stolen cookie is of no use on a connection of another person, and the session stays")
  func stolenCookie() async throws {
    let bench = PeopleBench()
    let cookie = try #require(await bench.signIn(as: "CN=ada"))
    let token = try #require(await bench.formToken(cookie, as: "CN=ada"))
    for thief in [nil, "CN=bob", "CN=eve"] {
      #expect(await bench.send("GET", "/list", as: thief, cookie: cookie).status == 401)
      let act = await bench.send("POST", "/act/add", as: thief, cookie: cookie, body: "token=\(token)")
      #expect(act.status == 401)
    }
    #expect(bench.pages.done.withLock(\.self).isEmpty)
    #expect(await bench.send("POST", "/act/add", as: "CN=ada", cookie: cookie, body: "token=\(token)").status == 303)
    #expect(bench.pages.done.withLock(\.self) == ["add  by CN=ada"])
  }

  @Test("A session ends with its certificate, and after 12 hours")
  func lifetimes() async throws {
    let bench = PeopleBench()
    let cookie = try #require(await bench.signIn(as: "CN=ada"))
    bench.advance(by: .seconds(12 * 3600 - 1))
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: cookie).status == 200)
    bench.advance(by: .seconds(1))
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: cookie).status == 401)
    bench.advance(by: .seconds(12 * 3600 - 10))
    let last = try #require(await bench.signIn(as: "CN=ada"))
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: last).status == 200)
    bench.advance(by: .seconds(10))
    // An open connection outlives its certificate.
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: last).status == 401)
    #expect(await bench.signIn(as: "CN=ada") == nil)
  }

  @Test("A person who loses the role loses the session, and a lower role applies at once")
  func lostRole() async throws {
    let bench = PeopleBench()
    let ada = try #require(await bench.signIn(as: "CN=ada"))
    let bob = try #require(await bench.signIn(as: "CN=bob"))
    let token = try #require(await bench.formToken(ada, as: "CN=ada"))
    bench.people.replace(PeopleBench.rules(subjects: [("CN=ada", .view)], provider: bench.provider))
    #expect(await bench.send("GET", "/", as: "CN=bob", cookie: bob).status == 401)
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: ada).status == 200)
    let act = await bench.send("POST", "/act/add", as: "CN=ada", cookie: ada, body: "token=\(token)")
    #expect(act.status == 403 && act.text.contains("Your role is view"))
    bench.people.replace(PeopleBench.rules(provider: bench.provider, acceptsCertificates: false))
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: ada).status == 401)
    #expect(bench.events.withLock(\.self).filter { $0.hasPrefix("lost") } == ["lost CN=bob", "lost CN=ada"])
    // The way back is a new sign-in.
    bench.people.replace(PeopleBench.rules(provider: bench.provider))
    #expect(await bench.send("GET", "/", as: "CN=bob", cookie: bob).status == 401)
  }

  @Test("People have sessions of their own: signing out ends one, and forms of one person are of no use to another")
  func several() async throws {
    let bench = PeopleBench()
    let first = try #require(await bench.signIn(as: "CN=ada"))
    let second = try #require(await bench.signIn(as: "CN=ada"))
    let bob = try #require(await bench.signIn(as: "CN=bob"))
    let token = try #require(await bench.formToken(first, as: "CN=ada"))
    #expect(await bench.send("POST", "/sign-out", as: "CN=bob", cookie: bob, body: "token=\(token)").status == 403)
    let out = await bench.send("POST", "/sign-out", as: "CN=ada", cookie: first, body: "token=\(token)")
    #expect(out.status == 200 && out.text.contains("Signed out") && out.text.contains("Sign in again"))
    let removed = try #require(out.first("Set-Cookie"))
    #expect(removed.hasPrefix("__Host-console-7443=; Secure;") && removed.hasSuffix("Max-Age=0"))
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: first).status == 401)
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: second).status == 200)
    #expect(await bench.send("GET", "/", as: "CN=bob", cookie: bob).status == 200)
  }

  @Test("A person has 8 sessions and all people 256; the oldest leaves, and others keep theirs")
  func bounds() async throws {
    let bench = PeopleBench()
    let bob = try #require(await bench.signIn(as: "CN=bob"))
    bench.advance(by: .seconds(1))
    let first = try #require(await bench.signIn(as: "CN=ada"))
    for _ in 0..<8 {
      bench.advance(by: .seconds(1))
      _ = try #require(await bench.signIn(as: "CN=ada"))
    }
    #expect(bench.people.sessionCount == 9)
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: first).status == 401)
    #expect(await bench.send("GET", "/", as: "CN=bob", cookie: bob).status == 200)
    let names = (0..<300).map { "CN=user \($0)" }
    bench.people.replace(
      PeopleBench.rules(subjects: names.map { ($0, .view) } + [("CN=bob", .view)], provider: bench.provider))
    for name in names {
      bench.advance(by: .seconds(1))
      _ = try #require(await bench.signIn(as: name))
    }
    #expect(bench.people.sessionCount == 256)
    #expect(await bench.send("GET", "/", as: "CN=bob", cookie: bob).status == 401)
  }

  @Test("A cookie that a browser brings along is never made a session")
  func fixation() async throws {
    let bench = PeopleBench()
    let planted = PeopleBench.sessionCookie + "=" + String(repeating: "A", count: 43)
    let answer = await bench.send("POST", "/sign-in/certificate", as: "CN=ada", cookie: planted)
    let cookie = try #require(answer.cookie(PeopleBench.sessionCookie))
    #expect(cookie != planted)
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: planted).status == 401)
    // More cookies than a browser has for one host and name.
    let many = (0..<100).map { _ in planted }.joined(separator: "; ")
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: "\(many); \(cookie)").status == 401)
    #expect(await bench.send("GET", "/", as: "CN=ada", cookie: "\(planted); \(cookie)").status == 200)
  }

  @Test(
    "A sign-in by certificate, an act and a page need the console's own host and origin",
    arguments: [
      ["Origin": ""], ["Origin": "http://console.example:7443"], ["Origin": "https://evil.example"],
      ["Origin": "https://console.example"], ["Origin": "null"], ["Sec-Fetch-Site": "cross-site"],
      ["Host": "evil.example:7443"], ["Host": "console.example"], ["Host": "127.0.0.1:7443"], ["Host": ""],
    ])
  func forgeries(_ changes: [String: String]) async throws {
    let bench = PeopleBench()
    let answer = await bench.send("POST", "/sign-in/certificate", changes, as: "CN=ada")
    #expect([403, 421].contains(answer.status) && answer.first("Set-Cookie") == nil)
    let cookie = try #require(await bench.signIn(as: "CN=ada"))
    let token = try #require(await bench.formToken(cookie, as: "CN=ada"))
    let act = await bench.send("POST", "/act/add", changes, as: "CN=ada", cookie: cookie, body: "token=\(token)")
    #expect([403, 421].contains(act.status))
    #expect(bench.pages.done.withLock(\.self).isEmpty)
  }

  @Test(
    "The way back after a sign-in leads to a page of the console",
    arguments: ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:x", "/%0d%0aa:b"])
  func back(_ path: String) async throws {
    let bench = PeopleBench()
    let answer = await bench.send("POST", "/sign-in/certificate", as: "CN=ada", body: "back=\(path)")
    #expect(answer.status == 303 && answer.first("Location") == "/")
    let begun = try #require(await bench.begin(path))
    let done = await bench.send("GET", "/sign-in/callback?code=code&state=\(begun.state)", cookie: begun.cookie)
    #expect(done.status == 200 && done.text.contains(#"content="0; url=/""#))
  }

  @Test("The printed token of a console on the loopback signs no one in")
  func noToken() async {
    let bench = PeopleBench()
    for body in ["", "token"] {
      #expect(await bench.send("POST", "/session", as: "CN=ada", body: body).status == 401)
    }
  }
}
