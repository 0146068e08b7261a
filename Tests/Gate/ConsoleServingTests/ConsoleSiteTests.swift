import ConsoleServing
import Foundation
import Commands
import Locking
import Testing

@Suite("The requests to a console")
struct ConsoleSiteTests {
  @Test(
    "A request to another host or port gets nothing, whatever its cookie",
    arguments: [
      "", "evil.example", "evil.example:4000", "localhost:4000", "127.0.0.1", "127.0.0.1:4001",
      "127.0.0.1:4000.evil.example",
      "[::1]:4000",
    ])
  func rebinding(_ host: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    for path in ["/", "/list", "/console.js"] {
      let answer = await bench.send("GET", path, ["Host": host], cookie: cookie)
      #expect(answer.status == 421 && answer.text.count < 100)
    }
    let other = Bench()
    #expect(await other.send("POST", "/session", ["Host": host], body: other.access.token).status == 421)
  }

  @Test("Another or unknown user of the machine is not served; root and the user behind sudo are")
  func users() {
    let site = Bench(users: [1000]).site
    for user in [PeerUser.own, .root, .other(1000)] { #expect(site.serves(user), "\(user)") }
    for user in [PeerUser.other(1001), .other(65_534), .closed, .unknown] { #expect(!site.serves(user), "\(user)") }
  }

  @Test("At port 80, browsers leave the port out")
  func defaultPort() async {
    let bench = Bench(port: 80)
    for host in ["127.0.0.1", "127.0.0.1:80"] {
      #expect(await bench.send("GET", "/", ["Host": host]).status == 401)
      let answer = await bench.send("POST", "/session", ["Host": host, "Origin": "http://\(host)"], body: "x")
      #expect(answer.status == 403 && answer.text.contains("used before"))
    }
    #expect(await bench.send("GET", "/", ["Host": "localhost"]).status == 421)
  }

  /// A forged form: what a page of another origin, or one that only has the cookie, can send.
  struct Forgery: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var changes: [String: String] = [:]
    var hasCookie = true
    /// `nil` for the right one.
    var token: String?
    let status: Int
  }

  static let forgeries = [
    Forgery(testDescription: "no origin", changes: ["Origin": ""], status: 403),
    Forgery(testDescription: "foreign origin", changes: ["Origin": "http://evil.example"], status: 403),
    Forgery(testDescription: "opaque origin", changes: ["Origin": "null"], status: 403),
    Forgery(testDescription: "other port", changes: ["Origin": "http://127.0.0.1:4001"], status: 403),
    Forgery(testDescription: "other scheme", changes: ["Origin": "https://127.0.0.1:4000"], status: 403),
    Forgery(testDescription: "longer origin", changes: ["Origin": "http://127.0.0.1:4000.evil.example"], status: 403),
    Forgery(testDescription: "cross-site fetch", changes: ["Sec-Fetch-Site": "cross-site"], status: 403),
    Forgery(testDescription: "same site", changes: ["Sec-Fetch-Site": "same-site"], status: 403),
    Forgery(testDescription: "no cookie", hasCookie: false, status: 401),
    Forgery(testDescription: "no token", token: "", status: 403),
    Forgery(testDescription: "wrong token", token: String(repeating: "A", count: 43), status: 403),
    Forgery(testDescription: "text", changes: ["Content-Type": "text/plain"], status: 400),
    Forgery(testDescription: "no type", changes: ["Content-Type": ""], status: 400),
  ]

  @Test("A forged form does nothing", arguments: forgeries)
  func forged(_ forgery: Forgery) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    let body = "what=x&token=\(forgery.token ?? token)"
    let answer = await bench.send(
      "POST", "/act/add", forgery.changes, cookie: forgery.hasCookie ? cookie : nil, body: body)
    #expect(answer.status == forgery.status)
    #expect(bench.pages.done.withLock(\.self).isEmpty)
    // The same form without the fault is done.
    let good = await bench.send("POST", "/act/add", cookie: cookie, body: "what=x&token=\(token)&back=/list")
    #expect(good.status == 303 && good.first("Location") == "/list?done=add")
    #expect(bench.pages.done.withLock(\.self) == ["add x"])
  }

  /// Combining marks whose order is not the canonical one. As characters, a run of them is slow to compare.
  private static let marks = String(repeating: "\u{301}\u{323}", count: 3000)

  @Test(
    "The cookie is found in addition to one of combining marks",
    arguments: ["a=\(marks); COOKIE", "COOKIE;\(marks)=1", "a=1;\(marks)b; COOKIE; c=\(marks)"])
  func cookieAmongMarks(_ form: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    #expect(await bench.send("GET", "/list", cookie: form.replacing("COOKIE", with: cookie)).status == 200)
    #expect(await bench.send("GET", "/list", cookie: form).status == 401)
  }

  @Test(
    "An origin with combining marks is refused",
    arguments: [
      "http://127.0.0.1:4000\(marks)", "http://\(marks)", "h\(marks)", marks, "http:/\(marks)/127.0.0.1:4000",
    ])
  func originOfMarks(_ origin: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    let body = "what=x&token=\(token)"
    #expect(await bench.send("POST", "/act/add", ["Origin": origin], cookie: cookie, body: body).status == 403)
    // Hosts and schemes have no case.
    let capital = await bench.send("POST", "/act/add", ["Origin": "HTTP://127.0.0.1:4000"], cookie: cookie, body: body)
    #expect(capital.status == 303)
  }

  @Test("A token of another console's session does nothing")
  func foreignToken() async throws {
    let (bench, other) = (Bench(), Bench())
    let cookie = try #require(await bench.signIn())
    let foreign = try #require(await other.signIn())
    let token = try #require(await other.formToken(foreign))
    #expect(await bench.send("POST", "/act/add", cookie: cookie, body: "token=\(token)").status == 403)
    #expect(bench.pages.done.withLock(\.self).isEmpty)
  }

  @Test("A role does what it may, and its pages have no other forms", arguments: ConsoleRole.allCases)
  func roles(_ role: ConsoleRole) async throws {
    let bench = Bench(role: role)
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    #expect((await bench.send("GET", "/list", cookie: cookie).text.contains("/act/add")) == (role >= .support))
    for (act, least) in [("add", ConsoleRole.support), ("stop", .admin)] {
      let answer = await bench.send("POST", "/act/\(act)", cookie: cookie, body: "token=\(token)")
      #expect(answer.status == (role >= least ? 303 : 403))
    }
    #expect(bench.pages.done.withLock(\.self).count == (role == .view ? 0 : role == .support ? 1 : 2))
  }

  @Test(
    "The way back leads to a page of the console",
    arguments: [
      "//evil.example/", "http://evil.example/", "/%0d%0aSet-Cookie:x", "/a\r\nSet-Cookie: x", "/\\evil.example", "",
      "javascript:x",
    ])
  func back(_ path: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    let answer = await bench.send(
      "POST", "/act/add", cookie: cookie, body: "token=\(token)&back=\(ConsoleForm.encoded(path))")
    let location = try #require(answer.first("Location"))
    #expect(answer.status == 303 && location.hasPrefix("/") && !location.hasPrefix("//"))
    #expect(!location.contains("\r") && !location.contains("\n") && !location.contains("\\"))
  }

  @Test("Texts of strangers are escaped in pages, parts, forms and faults")
  func escaped() async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let attack = ConsoleForm.encoded(ExamplePages.attack + "\u{202E}")
    let page = await bench.send("GET", "/list?search=\(attack)", cookie: cookie).text
    let part = await bench.send("GET", "/list?search=\(attack)", ["X-Console-Part": "live"], cookie: cookie).text
    bench.pages.fault.withLock { $0 = ConsoleFault(502, ExamplePages.attack, hint: ExamplePages.attack) }
    let fault = await bench.send("GET", "/list", cookie: cookie).text
    let faultPart = await bench.send("GET", "/list", ["X-Console-Part": "live"], cookie: cookie).text
    for text in [page, part, fault, faultPart] {
      #expect(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; onload=x"))
      #expect(!text.contains("<script>") && !text.contains(#""' onload"#))
    }
    // A field of a form has exactly what was entered.
    for text in [part, fault, faultPart] { #expect(!text.contains("\u{202E}")) }
    #expect(page.contains("<html") && !part.contains("<html"))
  }

  @Test("Every answer forbids frames, foreign code and caches", arguments: ["/", "/list", "/console.js", "/none"])
  func headers(_ path: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    for answer in [await bench.send("GET", path, cookie: cookie), await bench.send("GET", path)] {
      let policy = try #require(answer.first("Content-Security-Policy"))
      #expect(policy.hasPrefix("default-src 'none'; "))
      #expect(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"))
      #expect(!policy.contains("unsafe") && !policy.contains("*") && !policy.contains("http"))
      #expect(answer.first("Cache-Control") == "no-store" && answer.first("X-Frame-Options") == "DENY")
      #expect(answer.first("X-Content-Type-Options") == "nosniff")
      // With no-referrer, browsers would send `Origin: null` with the console's own forms.
      #expect(answer.first("Referrer-Policy") == "same-origin")
      if answer.first("Content-Type")?.hasPrefix("text/html") == true {
        #expect(
          !answer.text.contains(" style=") && !answer.text.contains("<style") && !answer.text.contains(#/ on\w+="/#))
      }
    }
  }

  @Test(
    "A query or form that is too long, repeated or no UTF-8 is refused",
    arguments: [
      "search=" + String(repeating: "a", count: 513), "search=%FF", "search=%", "search=%4", "search=a&search=b",
      (0...32).map { "a\($0)=1" }.joined(separator: "&"), String(repeating: "a", count: 33) + "=1",
    ])
  func malformed(_ query: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    #expect(await bench.send("GET", "/list?\(query)", cookie: cookie).status == 400)
    #expect(await bench.send("POST", "/act/add", cookie: cookie, body: "token=\(token)&\(query)").status == 400)
    #expect(bench.pages.done.withLock(\.self).isEmpty)
  }

  @Test("Other methods and acts are refused; an unknown notice is not shown")
  func others() async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    #expect(await bench.send("PUT", "/", cookie: cookie).status == 405)
    #expect(await bench.send("GET", "/act/add", cookie: cookie).status == 404)
    #expect(await bench.send("POST", "/act/none", cookie: cookie, body: "token=\(token)").status == 404)
    #expect(await bench.send("GET", "/list?done=add", cookie: cookie).text.contains("Added."))
    // Nothing is done at these pages that could say so.
    for target in ["/list?done=evil", "/list?done=stop", "/?done=add"] {
      let text = await bench.send("GET", target, cookie: cookie).text
      #expect(!text.contains(#"class="notice good""#) && !text.contains("Added."), "\(target)")
    }
  }

  @Test(
    "The way back keeps the query of the page, and stays well-formed",
    arguments: [
      ("/list?search=a&key=b", "/list?search=a&key=b&done=add"),
      ("/list?done=stop&search=a", "/list?search=a&done=add"),
      ("/list?", "/list?done=add"), ("/list?%64one=x", "/list?done=add"), ("/list?a=1&a=2", "/list?done=add"),
      ("/list?a=%F", "/list?done=add"), ("/list?a=b?c", "/list?a=b?c&done=add"),
    ])
  func backWithQuery(_ back: String, _ location: String) async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    let answer = await bench.send(
      "POST", "/act/add", cookie: cookie, body: "token=\(token)&back=\(ConsoleForm.encoded(back))")
    #expect(answer.first("Location") == location)
    #expect(await bench.send("GET", location, cookie: cookie).text.contains("Added."))
  }

  @Test("A form with two values of Sec-Fetch-Site is foreign")
  func doubledField() async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    func status(_ sites: [String]) async -> Int {
      await bench.site.answer(
        to: ConsoleRequest(
          method: "POST", path: "/act/add", query: nil,
          fields: [
            ("Host", "127.0.0.1:4000"), ("Origin", "http://127.0.0.1:4000"), ("Cookie", cookie),
            ("Content-Type", "application/x-www-form-urlencoded"),
          ] + sites.map { ("Sec-Fetch-Site", $0) }, body: Array("token=\(token)".utf8))
      ).status
    }
    #expect(await status(["same-origin", "cross-site"]) == 403)
    #expect(await status(["same-origin", "same-origin"]) == 403)
    #expect(await status(["same-origin"]) == 303)
  }

  @Test("A page that cannot be shown comes back by itself, unless asking again cannot help")
  func faultIsLive() async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let token = try #require(await bench.formToken(cookie))
    bench.pages.fault.withLock { $0 = ConsoleFault(502, "down") }
    let page = await bench.send("GET", "/list", cookie: cookie).text
    #expect(page.contains(#"id="content" data-live="reload""#) && page.contains(#"id="live""#))
    let form = await bench.send("POST", "/act/add", cookie: cookie, body: "token=\(token)")
    #expect(form.status == 502 && !form.text.contains("data-live"))
    bench.pages.fault.withLock { $0 = ConsoleFault(503, "too long", isPassing: false) }
    #expect(await !bench.send("GET", "/list", cookie: cookie).text.contains("data-live"))
    bench.pages.fault.withLock { $0 = nil }
    #expect(await !bench.send("GET", "/none", cookie: cookie).text.contains("data-live"))
    #expect(await bench.send("GET", "/list", ["X-Console-Part": "live"], cookie: cookie).status == 200)
  }

  @Test("A table is a file without formulas, and JSON is what the service says")
  func files() async throws {
    let bench = Bench()
    let cookie = try #require(await bench.signIn())
    let csv = await bench.send("GET", "/list.csv?search=%2Bcmd", cookie: cookie)
    #expect(csv.first("Content-Type") == "text/csv; charset=utf-8")
    #expect(csv.first("Content-Disposition") == #"attachment; filename="list.csv""#)
    let lines = csv.text.components(separatedBy: "\r\n")
    #expect(lines[1].hasPrefix("'+cmd,") && lines[2] == #"'=1+1,"'-1,""x""""#)
    #expect(await bench.send("GET", "/list.json", cookie: cookie).text == "[]")
    #expect(await bench.send("GET", "/none.csv", cookie: cookie).status == 404)
  }

  @Test("Files are for the role that may export, and pages of other roles have no links to them")
  func exports() async throws {
    for role in ConsoleRole.allCases {
      let bench = Bench(role: role, exportRole: .admin)
      let cookie = try #require(await bench.signIn())
      let status = role == .admin ? 200 : 403
      for path in ["/list.csv", "/list.json"] {
        #expect(await bench.send("GET", path, cookie: cookie).status == status, "\(role) \(path)")
      }
      #expect(await bench.send("GET", "/list", cookie: cookie).text.contains("list.csv") == (role == .admin))
    }
  }
}
