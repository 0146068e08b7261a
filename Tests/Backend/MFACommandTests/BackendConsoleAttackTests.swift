import Foundation
import Glibc
import MFAFixtures
import TestSupport
import Testing

@Suite("Attacks on the console of a backend", .serialized, .timeLimit(.minutes(5)))
struct BackendConsoleAttackTests {
  /// No name of an account has a slash.
  private static let markup = #""><script>alert(1)<script>'onload=x"#

  @Test("Texts that clients chose are escaped on the pages, and no secret appears on them")
  func texts() async throws {
    try await BackendInstallation.make { place in
      try place.configure("sms: { sink: log }")
      try await place.serving { backend in
        let phone = TestPhone(username: Self.markup, deviceID: "<b>'onload=x" + UUID().uuidString)
        let account = try await place.fullAccount(phone, trusting: Self.markup, model: Self.markup, at: backend)
        let console = try await ConsoleProcess(place, ["--role", "admin"])
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        let attack = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
        let secrets =
          account.secrets + [console.token, String(cookie.split(separator: "=")[1])]
        var shown = 0
        for path in [
          "/", "/accounts", "/accounts?search=\(attack)", "/accounts?after=\(attack)", account.path, "/recoveries",
          "/queues", "/history", "/history?account=\(attack)", "/history?event=\(attack)", "/history?search=\(attack)",
          "/accounts?done=\(attack)", "/history/check",
        ] {
          let text = try await console.get(path, cookie: cookie).text
          // The only scripts are the console's own, in the head.
          #expect(
            text.matches(of: /<script/).count == 1 && text.contains(#"<script src="/console.js" defer>"#), "\(path)")
          #expect(
            !text.contains("<b>") && !text.contains("'onload"), "\(path)")
          for secret in secrets { #expect(!text.contains(secret), "\(path): \(secret)") }
          if text.contains("&lt;script&gt;alert(1)") { shown += 1 }
        }
        #expect(shown >= 8)
        // The forms of the page of this account work.
        #expect(try await console.act("lock", "account=\(account.id)", on: account.path, cookie: cookie).status == 303)
      }
    }
  }

  @Test("Forged forms, other hosts and another console's cookie do nothing; a role does no more than it may")
  func forgeries() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        let (first, second) = (try await ConsoleProcess(place), try await ConsoleProcess(place, ["--role", "view"]))
        defer { for console in [first, second] { console.process.kill() } }
        let (one, two) = (try await first.signIn(), try await second.signIn())
        let token = try await first.formToken(cookie: one)
        let foreign = try await second.formToken(cookie: two)
        let form = "account=\(ada.id)&token="
        #expect(try await first.get("/", cookie: two).status == 401)
        for host in ["evil.example", "localhost:\(first.port)", second.host] {
          #expect(try await first.get("/accounts", cookie: one, host: host).status == 421, "\(host)")
        }
        // With the cookie, as a page of another origin can send it, and without.
        for (cookie, body, origin, status) in [
          (one, form + token, "http://evil.example", 403), (one, form + token, "null", 403),
          (one, form + token, "", 403),
          (one, form + foreign, nil, 403), (one, form, nil, 403), (nil, form + token, nil, 401),
          (two, form + token, nil, 401),
        ] as [(String?, String, String?, Int)] {
          let answer = try await first.post("/act/lock", body, cookie: cookie, origin: origin)
          #expect(answer.status == status, "\(origin ?? "-")")
        }
        // The fragment, a second time.
        #expect(try await first.post("/session", first.token).status == 403)
        // A view changes and exports nothing; support exports nothing and changes no right.
        #expect(try await second.act("lock", "account=\(ada.id)", on: "/accounts", cookie: two).status == 403)
        #expect(try await first.act("grant", "account=\(ada.id)", on: "/accounts", cookie: one).status == 403)
        for (console, cookie) in [(first, one), (second, two)] {
          for path in ["/accounts.csv", "/accounts.json", "\(ada.path).json", "/history.csv"] {
            #expect(try await console.get(path, cookie: cookie).status == 403, "\(path)")
          }
          #expect(try await !console.get("/accounts", cookie: cookie).text.contains("Export"))
        }
        #expect(try await !second.get(ada.path, cookie: two).text.contains("/act/"))
        for target in ["/accounts", ada.path, "/console.js"] {
          let answer = try await first.get(target, cookie: one)
          #expect(answer.headers.first("X-Frame-Options") == "DENY")
          #expect(answer.headers.first("Content-Security-Policy")?.hasPrefix("default-src 'none'; ") == true)
          #expect(answer.headers.first("Cache-Control") == "no-store")
        }
        #expect(try await place.users() == ["ada devices=1"])
        #expect(try await place.admin("GET", "/v1/history?actor=operator")["entries"]?.count == 0)
      }
    }
  }

  @Test("A browser that sends requests and reads no answer holds up no other")
  func silentReaders() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { _ async throws in
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        let statuses = try await console.statusesNextToSilentReaders(of: "/accounts", cookie: cookie)
        #expect(statuses == Array(repeating: 200, count: 20))
      }
    }
  }

  @Test("Large requests and many connections are bounded, and others are served")
  func bounds() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { _ async throws in
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        let large = String(repeating: "a", count: 17 << 10)
        #expect(try await console.get("/?a=" + large, cookie: cookie).status == 431)
        #expect(try await console.post("/act/lock", large, cookie: cookie).status == 413)
        #expect(try await console.get("/?a=" + large.prefix(600), cookie: cookie).status == 400)
        #expect(try await console.send("NONSENSE\r\n\r\n").status == 400)
        #expect(
          try await console.send("GET http://\(console.host)/ HTTP/1.1\r\nHost: \(console.host)\r\n\r\n").status == 400)
        let crowd = try await console.crowd("/", cookie: cookie)
        #expect(crowd == ConsoleProcess.Crowd(next: 200, isRefused: true, after: 200))
      }
    }
  }

  @Test(
    "Another user of the machine is never served: not from the operator's port, not blindly, and not in all places",
    .enabled(if: getuid() == 0, "to be another user, one must be root"), arguments: [12_345, 65_534] as [UInt32])
  func otherUser(_ user: UInt32) async throws {
    try await BackendInstallation.make { place in
      try await place.serving { _ async throws in
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let use = try await console.use(by: user, page: "/accounts")
        #expect(use.blind == Array(repeating: 401, count: 5))
        #expect(use.turns == [["HTTP/1.1 200 ", "", "HTTP/1.1 200 "], ["", "", "HTTP/1.1 200 "]])
        #expect(use.crowded == Array(repeating: 200, count: 10))
        _ = try await console.process.errors.first("the note") { $0.contains("(uid \(user))") }
      }
    }
  }

  @Test("The admin socket refuses malformed and unbounded queries about accounts")
  func queries() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { _ async throws in
        let long = String(repeating: "a", count: 5000)
        for target in [
          "/v1/accounts?search=\(long)", "/v1/accounts?search=%FF", "/v1/accounts?search=a&search=b",
          "/v1/accounts?state=all", "/v1/account", "/v1/account?id=x", "/v1/account?name=%0A",
          "/v1/history?before=x", "/v1/history?before=-1", "/v1/history?since=yesterday", "/v1/recoveries?after=%0A",
          "/v1/history?search=\(long.prefix(129))",
        ] {
          let answer = try await place.admin("GET", target)
          #expect(answer.status == 400 && answer["code"] == "invalid_request", "\(target.prefix(60)): \(answer.text)")
        }
        for path in ["lock", "unlock", "end-sessions", "remove-device", "cancel-recovery", "grant", "revoke"] {
          #expect(try await place.admin("GET", "/v1/account/\(path)").status == 405, "\(path)")
          #expect(try await place.admin("POST", "/v1/account/\(path)").status == 400, "\(path)")
        }
        #expect(try await place.admin("POST", "/v1/accounts").status == 405)
        #expect(try await place.admin("GET", "/v1/accounts?limit=99999999999999999999")["accounts"]?.count == 0)
      }
    }
  }
}
