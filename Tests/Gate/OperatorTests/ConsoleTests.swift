import AppAttest
import AttestGate
import Foundation
import GateProcesses
import GateService
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The console of a gate", .serialized, .timeLimit(.minutes(5)))
struct ConsoleTests {
  @Test("An operator finds why a key is refused, revokes it in the browser, and the gate logs who did it")
  func revocation() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 5)
      let old = try phone.credentials(over: await bench.visitor.challenge(), counter: 5)
      #expect(try await bench.visitor.refusal(of: old) == "counter_replayed")

      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      let refusals = try await console.get("/refusals?key=\(hash.prefix(8))", cookie: cookie).text
      #expect(refusals.contains("counter_replayed") && refusals.contains("/keys/\(hash)"))
      #expect(refusals.contains("sallyport refusals --key \(hash.prefix(8)) -c \(bench.config[1])"))

      let page = try await console.get("/keys/\(hash)", cookie: cookie).text
      for text in ["active", phone.keyID, "open sessions", "counter_replayed", "/act/revoke", "/act/close-session"] {
        #expect(page.contains(text), "\(text)")
      }
      let done = try await console.act("revoke", "key=\(hash)", on: "/keys/\(hash)", cookie: cookie)
      #expect(done.status == 303 && done.headers.first("Location") == "/keys/\(hash)?done=revoke")
      #expect(try await socket.ending(since: .now).code == 3003)
      #expect(try await console.get("/keys/\(hash)", cookie: cookie).text.contains("/act/restore"))

      let line = try await bench.gate.process.errors.first("the line about the change") {
        $0.contains("key revoked by operator")
      }
      let fields = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      #expect(fields["uid"] as? UInt32 == getuid() && fields["process"] as? Int32 == console.process.id)
      let user = try #require(getpwuid(getuid())).pointee
      #expect(fields["user"] as? String == String(cString: user.pw_name))
      #expect(fields["key"] as? String == String(hash.prefix(16)))

      #expect(try await console.act("restore", "key=\(hash)", on: "/keys/\(hash)", cookie: cookie).status == 303)
      #expect(
        try await sallyport(["keys", "show", hash, "--json"] + bench.config).json(KeyDescription.self).state == "active"
      )
    }
  }

  @Test("Shown commands find the gate of the console, also if a variable names it")
  func shownCommands() async throws {
    try await AdminBench.serving { bench in
      let file = bench.config[1]
      for (options, environment) in [(["-c", file], [:]), ([], ["SALLYPORT_CONFIG": file])]
        as [([String], [String: String?])]
      {
        let console = try await ConsoleProcess("sallyport", options, environment: environment)
        defer { console.process.kill() }
        let page = try await console.get("/refusals", cookie: try await console.signIn()).text
        #expect(page.contains("sallyport refusals -c \(file)<"), "\(options)")
      }
    }
  }

  @Test("The page of the configuration has what reloads have changed, without secrets")
  func changes() async throws {
    try await AdminBench.serving { bench in
      let file = bench.config[1]
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      #expect(try await console.get("/configuration", cookie: cookie).text.contains("has not changed a setting"))
      let text = try String(contentsOfFile: file, encoding: .utf8)
      for limit in ["1KiB", "2KiB"] {
        try (text + "session: { max_message: \(limit) }\n").write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try await sallyport(["reload"] + bench.config).status == 0)
      }
      let json = try await console.get("/configuration.json", cookie: cookie).body
      let changes = try #require(AdminJSON.value(ConfigurationListing.self, in: json)?.changes)
      #expect(changes.map(\.key) == ["session.max_message", "session.max_message"], "\(changes)")
      #expect(changes.first?.before == changes.last?.after && changes.first?.after != changes.first?.before)
      let page = try await console.get("/configuration", cookie: cookie).text
      #expect(page.contains("Settings that reloads have changed") && !page.contains("has not changed a setting"))
    }
  }

  @Test("Each page of a console shows the gate's state and the command that shows the same")
  func pages() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      let console = try await ConsoleProcess(bench, ["--role", "admin"])
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      for (path, texts) in [
        ("/", ["sallyport status", "open sessions", "Refusals by code", "Health"]),
        ("/refusals", ["sallyport refusals", "No refusals"]),
        ("/keys?state=active", ["sallyport keys list --state active", hash]),
        ("/keys?key=\(ConsoleTests.encoded(phone.keyID))", ["--prefix \(hash)", "active"]),
        (
          "/keys?sort=-key",
          ["sallyport keys list --sort=-key", hash, #"aria-sort="descending"><a href="/keys?sort=key"#]
        ),
        ("/sessions", ["sallyport sessions list", hash, "/act/close-session", #"aria-sort="ascending"><a href="#]),
        ("/sessions?sort=client", ["sallyport sessions list --sort client", hash, "/sessions?sort=-client"]),
        ("/upstreams", ["sallyport upstreams list", "available", "/act/drain"]),
        ("/certificates", ["CN=", "from files"]),
        ("/configuration", ["sallyport check --effective", "app_attest.enforcement", "gate.yaml:"]),
      ] as [(String, [String])] {
        let answer = try await console.get(path, cookie: cookie)
        #expect(answer.status == 200)
        for text in texts { #expect(answer.text.contains(text), "\(path): \(text)") }
      }
      for path in ["/none", "/keys/x", "/keys/AAAAAA"] {
        #expect(try await console.get(path, cookie: cookie).status == 404, "\(path)")
      }
      #expect(try await console.get("/keys?key=x", cookie: cookie).status == 400)
      let csv = try await console.get("/keys.csv", cookie: cookie).text.split(separator: "\r\n")
      #expect(csv.count == 2 && csv[1].hasPrefix("\(hash),"))
      let json = try await console.get("/sessions.json", cookie: cookie).body
      #expect(AdminJSON.value(SessionListing.self, in: json)?.sessions.count == 1)
      #expect(try await console.get("/keys/\(hash)", cookie: cookie).text.contains("Close its 1 session"))
      #expect(
        try await console.get("/upstreams.csv", cookie: cookie).text.hasPrefix(
          "route,server,condition,sessions,failures\r\n"))
      // Closing leaves the key.
      let done = try await console.act("close-sessions", "key=\(hash)", on: "/keys/\(hash)", cookie: cookie)
      #expect(done.status == 303)
      #expect(try await socket.ending(since: .now).code == 1001)
      #expect(
        try await sallyport(["keys", "show", hash, "--json"] + bench.config).json(KeyDescription.self).state == "active"
      )
    }
  }

  private static func encoded(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
  }

  @Test("Texts that clients chose are escaped on the pages, and no credential appears on them")
  func attacks() async throws {
    try await AdminBench.serving { bench in
      let phone = try Phone(of: bench.gate.authority)
      let nonce = try await bench.visitor.challenge()
      var credentials = try phone.credentials(over: nonce, counter: 1)
      credentials.append("User-Agent", "<script>alert(1)</script>")
      #expect(
        try await bench.visitor.refusal(of: credentials, at: "/%3Cscript%3E'onload=x?secret=tiger") == "key_refused")
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      let attack = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
      for path in [
        "/refusals", "/refusals?search=\(attack)", "/refusals?app=\(attack)", "/refusals?code=\(attack)",
        "/keys?app=\(attack)",
        "/sessions?key=\(attack)", "/refusals?done=\(attack)",
      ] {
        let text = try await console.get(path, cookie: cookie).text
        #expect(!text.contains("<script>") && !text.contains("'onload"), "\(path)")
        for secret in [nonce, "tiger", phone.keyID, console.token, String(cookie.split(separator: "=")[1])] {
          #expect(!text.contains(secret), "\(path): \(secret)")
        }
      }
      #expect(try await console.get("/refusals", cookie: cookie).text.contains("key_refused"))
    }
  }

  @Test("Two consoles have their own cookies, and a view changes nothing")
  func two() async throws {
    try await AdminBench.serving { bench in
      let (_, hash) = try await bench.registeredPhone()
      let (first, second) = (try await ConsoleProcess(bench), try await ConsoleProcess(bench, ["--role", "view"]))
      defer { for console in [first, second] { console.process.kill() } }
      let (one, two) = (try await first.signIn(), try await second.signIn())
      #expect(one.split(separator: "=")[0] != two.split(separator: "=")[0])
      #expect(try await first.get("/", cookie: two).status == 401)
      #expect(try await first.get("/", cookie: "\(two); \(one)").status == 200)
      #expect(try await first.get("/", cookie: one, host: second.host).status == 421)
      #expect(try await second.act("revoke", "key=\(hash)", on: "/keys/\(hash)", cookie: two).status == 403)
      #expect(try await second.act("drain", "upstream=x", on: "/upstreams", cookie: two).status == 403)
      #expect(try await first.act("drain", "upstream=x", on: "/upstreams", cookie: one).status == 403)
      #expect(
        try await sallyport(["keys", "show", hash, "--json"] + bench.config).json(KeyDescription.self).state == "active"
      )
    }
  }

  @Test("While the gate is down the pages say so; the console shows the gate again when it is back")
  func gateDown() async throws {
    try await Places.withTemporaryFolder { folder in
      var plan = GatePlan()
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      let gate = try await GateProcess(plan, in: folder + "/gate")
      let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      #expect(try await console.get("/", cookie: cookie).status == 200)
      try await gate.crash()
      let down = try await console.get("/", cookie: cookie)
      #expect(down.status == 502 && down.text.contains("cannot be reached"))
      #expect(down.text.contains(#"data-live="reload""#))
      let next = try await GateProcess(plan, in: folder + "/gate")
      defer { next.process.kill() }
      #expect(try await console.get("/", cookie: cookie).status == 200)
      console.process.send(SIGTERM)
      #expect(try await console.process.exit() == .code(0))
    }
  }

  @Test("Signing out ends the process, after its answer")
  func signOut() async throws {
    try await AdminBench.serving { bench in
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      let page = try await console.get("/", cookie: cookie).text
      let token = try #require(page.firstMatch(of: /name="token" value="([^"]+)"/)).output.1
      let answer = try await console.post("/sign-out", "token=\(token)", cookie: cookie)
      #expect(answer.status == 200 && answer.text.contains("Signed out"))
      #expect(try await console.process.exit() == .code(0))
    }
  }

  @Test("A browser that sends requests and reads no answer holds up no other")
  func silentReader() async throws {
    try await AdminBench.serving { bench in
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      let statuses = try await console.statusesNextToSilentReaders(of: "/configuration", cookie: cookie)
      #expect(statuses == Array(repeating: 200, count: 20))
    }
  }

  @Test("Large requests, many connections and slow clients are bounded, and others are served")
  func bounds() async throws {
    try await AdminBench.serving { bench in
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      #expect(try await console.get("/?a=" + String(repeating: "a", count: 9000), cookie: cookie).status == 431)
      #expect(try await console.post("/act/revoke", String(repeating: "a", count: 9000), cookie: cookie).status == 413)
      let crowd = try await console.crowd("/", cookie: cookie)
      #expect(crowd == ConsoleProcess.Crowd(next: 200, isRefused: true, after: 200))
    }
  }

  @Test(
    "Another user of the machine is never served: not from the operator's port, not blindly, and not in all places",
    .enabled(if: getuid() == 0, "to be another user, one must be root"), arguments: [12_345, 65_534] as [UInt32])
  func otherUser(_ user: UInt32) async throws {
    try await AdminBench.serving { bench in
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      // A sign-in without waiting for its answer does not use the token up. Then each user has the port of the other.
      let use = try await console.use(by: user, page: "/keys")
      #expect(use.blind == Array(repeating: 401, count: 5))
      #expect(use.turns == [["HTTP/1.1 200 ", "", "HTTP/1.1 200 "], ["", "", "HTTP/1.1 200 "]])
      #expect(use.crowded == Array(repeating: 200, count: 10))
      _ = try await console.process.errors.first("the note") { $0.contains("(uid \(user))") }
    }
  }

  @Test("A console needs a gate, and a port that is free")
  func failures() async throws {
    try await AdminBench.serving { bench in
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let taken = try await sallyport(["console", "--print", "--port", "\(console.port)"] + bench.config)
      #expect(taken.isFailure && taken.output.isEmpty)
      let role = try await sallyport(["console", "--role", "root"] + bench.config)
      #expect(role.status == 64)
      try await bench.gate.crash()
      let down = try await sallyport(["console", "--print"] + bench.config)
      #expect(down.status == 69 && down.isFailure)
    }
  }
}
