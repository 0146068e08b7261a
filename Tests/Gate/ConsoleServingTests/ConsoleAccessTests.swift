import ConsoleServing
import Testing

@Suite("The sign-in of a console")
struct ConsoleAccessTests {
  @Test("The printed token opens one session, whose cookie scripts and other sites do not get")
  func once() async throws {
    let bench = Bench()
    let answer = await bench.send("POST", "/session", body: bench.access.token)
    #expect(answer.status == 200)
    let cookie = try #require(answer.first("Set-Cookie"))
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
      #expect(cookie.contains("; " + attribute), "\(cookie)")
    }
    #expect(cookie.hasPrefix("console-4000="))
    #expect(!cookie.contains(bench.access.token))
    // A copy of the address, or its second use, opens nothing, and the first session stays.
    let second = await bench.send("POST", "/session", body: bench.access.token)
    #expect(second.status == 403 && second.first("Set-Cookie") == nil)
    #expect(await bench.send("GET", "/", cookie: String(cookie.prefix { $0 != ";" })).status == 200)
  }

  @Test("A wrong token opens nothing and uses nothing up", arguments: ["", "x", String(repeating: "A", count: 43)])
  func wrong(_ token: String) async {
    let bench = Bench()
    #expect(await bench.send("POST", "/session", body: token).status == 403)
    #expect(await bench.signIn() != nil)
  }

  @Test("Of many browsers with the token one is signed in")
  func race() async {
    let bench = Bench()
    let count = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 { group.addTask { await bench.signIn() != nil } }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(count == 1)
  }

  @Test("The token ends after 10 minutes, the session after 12 hours")
  func lifetimes() async throws {
    let late = Bench()
    late.advance(by: .seconds(599))
    #expect(!late.access.isOver)
    late.advance(by: .seconds(1))
    #expect(late.access.isOver)
    #expect(await late.signIn() == nil)

    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    bench.advance(by: .seconds(12 * 3600 - 1))
    #expect(await bench.send("GET", "/", cookie: cookie).status == 200)
    #expect(!bench.access.isOver)
    bench.advance(by: .seconds(1))
    #expect(await bench.send("GET", "/", cookie: cookie).status == 401)
    #expect(bench.access.isOver)
  }

  @Test("Without the cookie of this process every page is the sign-in page, and says nothing of the service")
  func withoutCookie() async throws {
    let (bench, other) = (Bench(), Bench())
    _ = await bench.signIn()
    let foreign = try #require(await other.signIn())
    for cookie in [nil, "console-4000=", "console-4000=x", "a=b", foreign] {
      for path in ["/", "/list", "/list.csv", "/list.json", "/none"] {
        let answer = await bench.send("GET", path, cookie: cookie)
        #expect(answer.status == 401 && !answer.text.contains("start") && !answer.text.contains("token"))
      }
    }
  }

  @Test("Signing out needs the form's token, and ends the session")
  func signOut() async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    #expect(await bench.send("POST", "/sign-out", cookie: cookie, body: "token=x").status == 403)
    #expect(!bench.access.isOver)
    let token = try #require(await bench.formToken(cookie))
    let answer = await bench.send("POST", "/sign-out", cookie: cookie, body: "token=\(token)")
    #expect(answer.status == 200 && answer.text.contains("Signed out"))
    #expect(bench.access.isOver)
    #expect(await bench.send("GET", "/", cookie: cookie).status == 401)
  }
}
