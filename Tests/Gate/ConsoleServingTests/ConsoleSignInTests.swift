import ConsoleServing
import Locking
import Testing

@Suite("The sign-in of people at a provider")
struct ConsoleSignInTests {
  @Test("A browser goes to the provider and comes back with a session, on a page that leads on by itself")
  func signIn() async throws {
    let bench = PeopleBench()
    let begun = try #require(await bench.begin("/list"))
    let answer = await bench.send("GET", "/sign-in/callback?code=code&state=\(begun.state)", cookie: begun.cookie)
    #expect(answer.status == 200 && answer.text.contains(#"content="0; url=/list""#))
    let cookies = answer.fields.filter { $0.name == "Set-Cookie" }.map(\.value)
    #expect(cookies.contains { $0.hasPrefix("__Host-console-7443=") && $0.contains("SameSite=Strict") })
    // The cookie of the sign-in is removed.
    #expect(cookies.contains { $0.hasPrefix("__Host-console-sign-in-7443=;") && $0.contains("Max-Age=0") })
    let cookie = try #require(answer.cookie(PeopleBench.sessionCookie))
    #expect(await bench.send("GET", "/list", cookie: cookie).text.contains("eva (eva) · role support"))
    #expect(bench.events.withLock(\.self) == ["in eva (eva) support 192.0.2.7"])
  }

  @Test("A browser with a session gets no second one, and goes on to the page that it wanted")
  func twice() async throws {
    let bench = PeopleBench()
    let cookie = try #require(await bench.signIn(as: "CN=ada"))
    let again = await bench.send("POST", "/sign-in/certificate", as: "CN=ada", cookie: cookie, body: "back=/list")
    let provider = await bench.send("GET", "/sign-in/provider?back=/list", as: "CN=ada", cookie: cookie)
    for answer in [again, provider] {
      #expect(answer.status == 303 && answer.first("Location") == "/list" && answer.first("Set-Cookie") == nil)
    }
    #expect(bench.people.sessionCount == 1 && bench.provider.nonces.withLock(\.self).isEmpty)
    let elsewhere = await bench.send("GET", "/sign-in/provider?back=//evil.example", as: "CN=ada", cookie: cookie)
    #expect(elsewhere.first("Location") == "/")
    // A stolen cookie without the certificate is no session.
    #expect(await bench.send("GET", "/sign-in/provider", cookie: cookie).first("Set-Cookie") != nil)
  }

  @Test("The cookie of a sign-in is for TLS and no script, and comes back from the provider's page")
  func cookie() async throws {
    let answer = await PeopleBench().send("GET", "/sign-in/provider")
    let cookie = try #require(answer.first("Set-Cookie"))
    for attribute in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"] {
      #expect(cookie.contains("; " + attribute), "\(cookie)")
    }
  }

  @Test("A redirect that this browser did not ask for opens no session, and the provider is not asked")
  func foreignRedirect() async throws {
    let (bench, other) = (PeopleBench(), PeopleBench())
    let begun = try #require(await bench.begin())
    let victim = try #require(await bench.begin())
    let foreign = try #require(await other.begin())
    let changed = String(begun.cookie.dropLast()) + (begun.cookie.hasSuffix("A") ? "B" : "A")
    for (state, cookie) in [
      (begun.state, nil), (begun.state, victim.cookie), ("", begun.cookie), ("x", begun.cookie),
      (foreign.state, begun.cookie), (foreign.state, foreign.cookie), (begun.state, changed),
      (begun.state, PeopleBench.signInCookie + "="), (begun.state, PeopleBench.signInCookie + "=...."),
    ] as [(String, String?)] {
      let answer = await bench.send("GET", "/sign-in/callback?code=code&state=\(state)", cookie: cookie)
      #expect(answer.status == 403 && answer.cookie(PeopleBench.sessionCookie) == nil)
    }
    #expect(bench.provider.exchanged.withLock(\.self).isEmpty && bench.people.sessionCount == 0)
  }

  @Test("A sign-in is used once, within 10 minutes, and each has a nonce of its own")
  func once() async throws {
    let bench = PeopleBench()
    let begun = try #require(await bench.begin())
    let target = "/sign-in/callback?code=code&state=\(begun.state)"
    #expect(await bench.send("GET", target, cookie: begun.cookie).status == 200)
    let again = await bench.send("GET", target, cookie: begun.cookie)
    #expect(again.status == 403 && again.cookie(PeopleBench.sessionCookie) == nil && bench.people.sessionCount == 1)
    let late = try #require(await bench.begin())
    bench.advance(by: .seconds(600))
    #expect(
      await bench.send("GET", "/sign-in/callback?code=code&state=\(late.state)", cookie: late.cookie).status == 403)
    let nonces = bench.provider.nonces.withLock(\.self)
    #expect(Set(nonces).count == nonces.count && nonces.count == 2)
  }

  @Test("A link of another site begins no sign-in", arguments: ["cross-site", "same-site", "none"])
  func foreignLink(_ site: String) async {
    let answer = await PeopleBench().send("GET", "/sign-in/provider", ["Sec-Fetch-Site": site])
    #expect(answer.status == 401 && answer.first("Location") == nil && answer.first("Set-Cookie") == nil)
  }

  @Test("Without a group that has a role there is no session, and names that look alike are no group")
  func groups() async throws {
    let cases: [String: (subject: String, groups: [String])] = [
      "a": ("a", []), "b": ("b", ["Support", "support ", "suppоrt", "s\u{75}pport\u{200B}"]),
      "c": ("c", [String(repeating: "x", count: 300)]),
    ]
    for code in ["a", "b", "c"] {
      let bench = PeopleBench(cases)
      let begun = try #require(await bench.begin())
      let answer = await bench.send("GET", "/sign-in/callback?code=\(code)&state=\(begun.state)", cookie: begun.cookie)
      #expect(answer.status == 403 && answer.cookie(PeopleBench.sessionCookie) == nil && bench.people.sessionCount == 0)
      #expect(bench.events.withLock(\.self) == ["none \(code) (\(code))"])
    }
  }

  @Test("Thousands of groups are refused, and so is a subject that is too long")
  func tooMany() {
    let many = (0...ConsolePerson.mostGroups).map { "group \($0)" }
    #expect(ConsolePerson(issuer: "i", subject: "s", name: nil, groups: many) == nil)
    #expect(ConsolePerson(issuer: "i", subject: "s", name: nil, groups: Array(many.dropLast())) != nil)
    #expect(ConsolePerson(issuer: "i", subject: String(repeating: "s", count: 385), name: nil, groups: []) == nil)
    #expect(ConsolePerson(issuer: "i", subject: "", name: nil, groups: []) == nil)
  }

  @Test("The name of a person has no character that a log would show as something else")
  func names() {
    let person = ConsolePerson(issuer: "i", subject: "4711", name: "ada\u{202E}\"\n", groups: [])
    #expect(person?.name == "ada\u{FFFD}'\u{FFFD} (4711)")
    #expect(
      ConsolePerson(issuer: "i", subject: "4711", name: String(repeating: "a", count: 97), groups: [])?.name == "(4711)"
    )
    // No user of a provider is called as the owner of a certificate.
    #expect(ConsolePerson(issuer: "i", subject: "CN=ada", name: nil, groups: [])?.name == "(CN=ada)")
  }

  @Test("A script begins no sign-in, and a person does")
  func script() async {
    for mode in ["cors", "same-origin", "no-cors", "websocket"] {
      let answer = await PeopleBench().send(
        "GET", "/sign-in/provider", ["Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": mode])
      #expect(answer.status == 401 && answer.first("Location") == nil && answer.first("Set-Cookie") == nil, "\(mode)")
    }
    let begun = await PeopleBench().send(
      "GET", "/sign-in/provider", ["Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"])
    #expect(begun.status == 303)
  }

  @Test("A code of a provider that a reload has replaced does not go to the new one")
  func replacedProvider() async throws {
    let bench = PeopleBench()
    let begun = try #require(await bench.begin())
    let other = ExampleProvider([:], issuer: "https://other.example")
    bench.people.replace(PeopleBench.rules(provider: other, issuer: other.issuer))
    let answer = await bench.send("GET", "/sign-in/callback?code=code&state=\(begun.state)", cookie: begun.cookie)
    #expect(answer.status == 403 && other.exchanged.withLock(\.self).isEmpty && bench.people.sessionCount == 0)
    // The old provider again: its sign-in goes on.
    bench.people.replace(PeopleBench.rules(provider: bench.provider))
    #expect(
      await bench.send("GET", "/sign-in/callback?code=code&state=\(begun.state)", cookie: begun.cookie).status == 200)
  }

  @Test("A session of another provider's user ends when the settings name another issuer")
  func otherIssuer() async throws {
    let bench = PeopleBench()
    let begun = try #require(await bench.begin())
    let answer = await bench.send("GET", "/sign-in/callback?code=code&state=\(begun.state)", cookie: begun.cookie)
    let cookie = try #require(answer.cookie(PeopleBench.sessionCookie))
    bench.people.replace(PeopleBench.rules(provider: bench.provider, issuer: "https://other.example"))
    #expect(await bench.send("GET", "/", cookie: cookie).status == 401)
    #expect(bench.events.withLock(\.self).last == "lost eva (eva)")
  }

  @Test("A provider that does not answer holds at most two exchanges of an address and sixteen in all")
  func slowProvider() async throws {
    let bench = PeopleBench()
    var browsers: [(state: String, cookie: String)] = []
    for _ in 0..<40 { browsers.append(try #require(await bench.begin())) }
    bench.provider.latch.close()
    await withTaskGroup(of: Int.self) { group in
      for (number, browser) in browsers.enumerated() {
        // Ten addresses with four browsers each.
        let address = "192.0.2.\(number % 10)"
        group.addTask {
          await bench.send(
            "GET", "/sign-in/callback?code=code&state=\(browser.state)", cookie: browser.cookie, address: address
          ).status
        }
      }
      // All others are refused while none of these is answered.
      var refused = 0
      while refused < 24, let status = await group.next() { refused += status == 503 ? 1 : 0 }
      bench.provider.latch.open()
      var served = 0
      for await status in group { served += status == 200 ? 1 : 0 }
      #expect(refused == 24 && served == 16)
    }
    #expect(bench.provider.exchanged.withLock(\.count) == 16)
    // Others get their turn afterward.
    let begun = try #require(await bench.begin())
    #expect(
      await bench.send("GET", "/sign-in/callback?code=code&state=\(begun.state)", cookie: begun.cookie).status == 200)
  }

  @Test("An error of the provider is shown as text, and ends the sign-in")
  func providerError() async throws {
    let bench = PeopleBench()
    let begun = try #require(await bench.begin())
    let answer = await bench.send(
      "GET", "/sign-in/callback?error=%3Cscript%3E&state=\(begun.state)", cookie: begun.cookie)
    #expect(answer.status == 403 && !answer.text.contains("<script>") && answer.text.contains("&lt;script&gt;"))
    #expect(bench.provider.exchanged.withLock(\.self).isEmpty)
  }
}
