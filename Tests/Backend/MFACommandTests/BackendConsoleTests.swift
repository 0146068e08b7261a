import Foundation
import Glibc
import MFADomain
import MFAFixtures
import PostgresServers
import TestSupport
import Testing

@Suite("The console of a backend", .serialized, .timeLimit(.minutes(5)))
struct BackendConsoleTests {
  @Test(
    "An operator finds a locked account in the browser and unlocks it, and the history has who did it",
    arguments: ["sqlite", "postgres"])
  func unlocking(_ database: String) async throws {
    try await BackendInstallation.make { place in
      if database == "postgres" { try place.configure(database: try await PostgresServer.shared().newURL()) }
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        _ = try await place.enrolled(TestPhone(username: "bob"), at: backend)
        #expect(try await place.operate("admin", "lock", "ada").exit == .code(0))
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        let locked = try await console.get("/accounts?state=locked", cookie: cookie).text
        #expect(locked.contains(ada.path) && locked.contains(">ada</a>") && !locked.contains(">bob</a>"))
        #expect(locked.contains("mfa-backend admin users --state locked -c \(place.file)"))
        #expect(try await console.get(ada.path, cookie: cookie).text.contains("locked by an operator"))
        let done = try await console.act("unlock", "account=\(ada.id)", on: ada.path, cookie: cookie)
        #expect(done.status == 303 && done.headers.first("Location") == "\(ada.path)?done=unlock", "\(done.text)")
        let page = try await console.get("\(ada.path)?done=unlock", cookie: cookie).text
        #expect(page.contains("The account is unlocked") && !page.contains("locked by an operator"))
        #expect(page.contains("user.unlocked"))
        #expect(try await place.users() == ["ada devices=1", "bob devices=1"])
        let entry = try await place.operate("audit", "search", "--event", "user.unlocked", "--json").output
        #expect(entry.count == 1 && entry[0].contains(#""actor":"operator:uid \#(getuid())""#), "\(entry)")
        #expect(entry.first?.contains(#""account":"ada""#) == true)
        #expect(try await place.operate("audit", "verify").exit == .code(0))
      }
    }
  }

  @Test("A page from before another operator's lock does not lift it, and an act that changes nothing says so")
  func stalePage() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        #expect(try await console.act("lock", "account=\(ada.id)", on: ada.path, cookie: cookie).status == 303)
        func locked() async throws -> String? {
          try await place.admin("GET", "/v1/account?id=\(ada.id)")["account"]?["lockedAt"]?.text
        }
        let since = try #require(try await locked())
        let stale = try await console.act("unlock", "account=\(ada.id)&seen=none", on: ada.path, cookie: cookie)
        #expect(stale.status == 409 && stale.text.contains("has changed meanwhile"))
        let again = try await console.act("lock", "account=\(ada.id)", on: ada.path, cookie: cookie)
        #expect(again.status == 409 && again.text.contains("Nothing has changed"))
        #expect(try await locked() == since)
        let page = try await console.get(ada.path, cookie: cookie).text
        let seen = try #require(page.firstMatch(of: /name="seen" value="([^"]+)"/)?.1)
        let done = try await console.act("unlock", "account=\(ada.id)&seen=\(seen)", on: ada.path, cookie: cookie)
        #expect(done.status == 303)
        #expect(try await locked() == nil)
      }
    }
  }

  @Test("Each page shows the backend's state and the command that shows the same")
  func pages() async throws {
    try await BackendInstallation.make { place in
      try place.configure("sms: { sink: log }")
      try await place.serving { backend in
        let ada = try await place.fullAccount(TestPhone(username: "ada"), trusting: "kitchen", at: backend)
        let console = try await ConsoleProcess(place, ["--role", "admin"])
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        for (path, texts) in [
          ("/", ["mfa-backend status -c", "open sockets", "gate keys", place.database, #"action="/accounts""#]),
          ("/accounts?search=AD", ["mfa-backend admin users --search AD", ada.path, "active"]),
          (
            ada.path,
            [
              "mfa-backend admin show", "iPhone 15 Pro", "kitchen", "second factor", "/act/remove-device",
              "/act/end-sessions", "/act/cancel-recovery", "/act/grant", "recovery.started", "device.enrolled",
              "mfa-backend admin reset", "Failed attempts", "code.refused", "refusals.repeated",
              "Tokens and added apps",
              "Tablet", String(ada.phone.app.keyHash.prefix(12)) + "</code>", "event=device",
            ]
          ),
          ("/recoveries", ["mfa-backend admin recoveries", "ada", "waiting", "/act/cancel-recovery"]),
          ("/queues", ["mfa-backend status", "SMS", "to the log", "not delivered"]),
          ("/history?event=recovery", ["mfa-backend audit search --event recovery", "recovery.started"]),
          ("/history/check", ["mfa-backend audit verify", "Every entry has its hash"]),
        ] as [(String, [String])] {
          let answer = try await console.get(path, cookie: cookie)
          #expect(answer.status == 200, "\(path): \(answer.text)")
          for text in texts { #expect(answer.text.contains(text), "\(path): \(text)") }
          for secret in ada.secrets { #expect(!answer.text.contains(secret), "\(path): \(secret)") }
        }
        for path in ["/none", "/accounts/x", "/accounts/\(UUID().uuidString.lowercased())"] {
          #expect(try await console.get(path, cookie: cookie).status == 404, "\(path)")
        }
        for path in ["//", "/../", "/a%2Fb", "/./"] {
          #expect(try await console.get(path, cookie: cookie).status == 400, "\(path)")
        }
        let csv = try await console.get("/accounts.csv", cookie: cookie).text.components(separatedBy: "\r\n")
        #expect(csv[0].hasPrefix("account,state,second factor,") && csv[1].hasPrefix("ada,active,20"), "\(csv)")
        let json = try JSONValue(Data(try await console.get("/history.json?event=recovery", cookie: cookie).body))
        #expect(json["entries"]?[0]?["event"] == "recovery.started")
        let exports = try await [
          console.get("\(ada.path).json", cookie: cookie), console.get("/recoveries.csv", cookie: cookie),
        ]
        for answer in exports {
          #expect(answer.status == 200)
          for secret in ada.secrets { #expect(!answer.text.contains(secret), "\(secret)") }
        }
      }
    }
  }

  @Test("Each act does one thing at one account, and is an entry of its history")
  func acts() async throws {
    try await BackendInstallation.make { place in
      try place.configure("sms: { sink: log }")
      try await place.serving { backend in
        let ada = try await place.fullAccount(TestPhone(username: "ada"), trusting: "kitchen", at: backend)
        let bob = try await place.enrolled(TestPhone(username: "bob"), at: backend)
        let console = try await ConsoleProcess(place, ["--role", "admin"])
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        for (act, values, event) in [
          ("end-sessions", "", "session.revoked"), ("cancel-recovery", "", "recovery.cancelled"),
          ("grant", "", "user.role_changed"), ("revoke", "", "user.role_changed"), ("lock", "", "user.locked"),
          ("unlock", "", "user.unlocked"),
          ("remove-device", "&device=\(ada.phone.deviceID)", "device.unenrolled"),
        ] {
          let done = try await console.act(act, "account=\(ada.id)\(values)", on: ada.path, cookie: cookie)
          #expect(done.status == 303, "\(act): \(done.text)")
          let last = try await place.admin("GET", "/v1/history?account=ada&limit=2&search=\(event)&actor=operator")
          #expect(last["entries"]?[0]?["event"]?.text == event, "\(act): \(last.text)")
          #expect(last["entries"]?[0]?["actor"] == .string("operator:uid \(getuid())"), "\(act)")
        }
        let shown = try await place.admin("GET", "/v1/account?id=\(ada.id)")
        #expect(shown["sessions"]?.count == 0 && shown["devices"]?.count == 0 && shown["recovery"] == nil)
        // A device of another account, an unknown account, and what is not there any more.
        for (act, values) in [
          ("remove-device", "account=\(ada.id)&device=\(bob.phone.deviceID)"), ("remove-device", "account=\(ada.id)"),
          ("lock", "account=\(UUID().uuidString.lowercased())"), ("lock", "account=bob"), ("lock", ""),
          ("cancel-recovery", "account=\(ada.id)"), ("unassign-token", "account=\(bob.id)&serial=none"),
        ] {
          let refused = try await console.act(act, values, on: "/accounts", cookie: cookie)
          #expect([400, 404].contains(refused.status), "\(act) \(values): \(refused.status)")
        }
        // An app that its user has added is removed, and never given away.
        let app = try #require(shown["tokens"]?[0])
        let serial = try #require(app["serial"]?.text)
        #expect(app["name"] == "Tablet" && serial.hasPrefix("app-"), "\(app)")
        let taken = try await console.act(
          "unassign-token", "account=\(ada.id)&serial=\(serial)", on: ada.path, cookie: cookie)
        #expect(taken.status == 409 && taken.text.contains("the user has added"), "\(taken.text)")
        let refused = try await place.operate("admin", "tokens", "unassign", serial)
        #expect(refused.exit == .code(1) && refused.errors.first?.contains("its user has added") == true, "\(refused)")
        #expect(try await place.operate("admin", "tokens", "list").output.joined().contains(" name="))
        #expect(try await place.operate("admin", "show", "ada").output.contains { $0.hasPrefix("app \(serial) ") })
        #expect(try await place.operate("admin", "tokens", "remove", serial).output == ["removed \(serial) of ada"])
        #expect(try await place.users() == ["ada devices=0 mfa", "bob devices=1"])
        let missing = try await place.admin("GET", "/v1/history?account=bob&actor=operator")
        #expect(missing["entries"]?.count == 0)
      }
    }
  }

  @Test("The page of an account shows and does everything if the rule of today refuses its name")
  func keptName() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let bob = try await place.enrolled(TestPhone(username: "bob"), at: backend)
        _ = try await BackendInstallation.sql(
          "UPDATE users SET username = ' bob ', name_key = ' bob ' WHERE name_key = 'bob'", place.folder + "/mfa.db")
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        #expect(try await console.act("lock", "account=\(bob.id)", on: bob.path, cookie: cookie).status == 303)
        let page = try await console.get(bob.path, cookie: cookie)
        #expect(page.status == 200 && page.text.contains("user.locked"), "\(page.text)")
        #expect(page.text.contains("mfa-backend admin show --id \(bob.id) -c \(place.file)"), "\(page.text)")
        let link = try #require(page.text.firstMatch(of: /href="(\/history\?account=[^"]+)"/)?.1)
        let history = try await console.get(String(link).replacing("&amp;", with: "&"), cookie: cookie)
        #expect(history.status == 200 && history.text.contains("user.locked"), "\(history.text)")
      }
    }
  }

  @Test("Shown commands find the backend of the console, and its database")
  func shownCommands() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        let socket = "unix:" + place.socket
        for (options, ofStatus) in [
          (["--admin", socket], "--admin \(socket)"),
          (["--admin", socket, "-c", place.file], "-c \(place.file) --admin \(socket)"),
          (["-c", place.file], "-c \(place.file)"), ([], "-c \(place.file)"),
        ] as [([String], String)] {
          let console = try await ConsoleProcess(
            "mfa-backend", options,
            environment: ["SUDO_UID": nil, "MFA_BACKEND_CONFIG": options.isEmpty ? place.file : nil])
          defer { console.process.kill() }
          let cookie = try await console.signIn()
          let overview = try await console.get("/", cookie: cookie).text
          #expect(overview.contains("mfa-backend status \(ofStatus)<"), "\(options)")
          let page = try await console.get(ada.path, cookie: cookie).text
          for words in ["show", "lock", "reset"] {
            #expect(page.contains("mfa-backend admin \(words) -c \(place.file) ada"), "\(options) \(words)")
          }
        }
      }
    }
  }

  @Test("A row that cannot be read is a line of the log")
  func unreadableRow() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        _ = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        _ = try await BackendInstallation.sql("UPDATE users SET created_at = 'x'", place.folder + "/mfa.db")
        #expect(try await place.admin("GET", "/v1/accounts").status >= 500)
        let line = try await backend.process.errors.first("the line about the row") {
          $0.contains("request of operator failed")
        }
        let fields = try JSONValue(Data(line.utf8))
        #expect(fields["path"] == "/v1/accounts" && fields["operator"] == .string("uid \(getuid())"))
        #expect(fields["reason"]?.text?.contains("created_at") == true, "\(line)")
      }
    }
  }

  @Test("The history names the person who called sudo")
  func sudo() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        let console = try await ConsoleProcess(place, environment: ["SUDO_UID": "4711"])
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        #expect(try await console.act("lock", "account=\(ada.id)", on: ada.path, cookie: cookie).status == 303)
        let page = try await console.get("/history?actor=4711&event=user", cookie: cookie).text
        #expect(page.contains(">operator:uid \(getuid()) by sudo of uid 4711<"))
        #expect(page.contains("operator:uid \(getuid()) by sudo of uid 4711") && page.contains("user.locked"))
      }
    }
  }

  @Test("While the backend is down the pages say so; the console shows it again when it is back")
  func backendDown() async throws {
    try await BackendInstallation.make { place in
      var account: ConsoleAccount?
      var console: (process: ConsoleProcess, cookie: String)?
      defer { console?.process.process.kill() }
      try await place.serving { backend in
        account = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        let started = try await ConsoleProcess(place)
        console = (started, try await started.signIn())
        #expect(try await started.get("/", cookie: console?.cookie).status == 200)
        #expect(try await backend.stop() == .code(0))
      }
      let ada = try #require(account)
      let (running, cookie) = try #require(console)
      let token = try await running.formToken(on: "/none", cookie: cookie)
      for path in ["/", "/accounts", ada.path, "/history"] {
        let down = try await running.get(path, cookie: cookie)
        #expect(down.status == 502 && down.text.contains("cannot be reached"), "\(path)")
        #expect(down.text.contains(#"data-live="reload""#))
      }
      #expect(try await running.post("/act/lock", "account=\(ada.id)&token=\(token)", cookie: cookie).status == 502)
      try await place.serving { _ async throws in
        #expect(try await running.get("/accounts", cookie: cookie).text.contains(">ada</a>"))
        #expect(try await place.users() == ["ada devices=1"])
      }
      running.process.send(SIGTERM)
      #expect(try await running.process.exit() == .code(0))
    }
  }

  @Test("A store that cannot be written is reported, and the act is not done")
  func storeDown() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        let ada = try await place.enrolled(TestPhone(username: "ada"), at: backend)
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let cookie = try await console.signIn()
        let names = ["mfa.db", "mfa.db-wal", "mfa.db-shm"].map { place.folder + "/" + $0 }
        for name in names { try FileManager.default.moveItem(atPath: name, toPath: name + ".away") }
        let token = try await console.formToken(cookie: cookie)
        let refused = try await console.post("/act/lock", "account=\(ada.id)&token=\(token)", cookie: cookie)
        #expect(refused.status == 503 && refused.text.contains("the database: "), "\(refused.text)")
        for name in names { try FileManager.default.moveItem(atPath: name + ".away", toPath: name) }
        #expect(try await place.users() == ["ada devices=1"])
      }
    }
  }

  @Test("A console needs a backend, and a port that is free")
  func failures() async throws {
    try await BackendInstallation.make { place in
      let none = try await place.operate("console", "--print")
      #expect(none.exit == .code(69) && none.output.isEmpty, "\(none)")
      try await place.serving { _ in
        let console = try await ConsoleProcess(place)
        defer { console.process.kill() }
        let taken = try await place.operate("console", "--print", "--port", "\(console.port)")
        #expect(taken.exit == .code(71) && taken.output.isEmpty, "\(taken)")
        #expect(taken.errors.last == "hint: name another port: --port 0 selects a free one")
        #expect(try await place.operate("console", "--role", "root").exit == .code(64))
        // Signing out ends the process, after its answer.
        let cookie = try await console.signIn()
        let token = try await console.formToken(cookie: cookie)
        let answer = try await console.post("/sign-out", "token=\(token)", cookie: cookie)
        #expect(answer.status == 200 && answer.text.contains("Signed out"))
        #expect(try await console.process.exit() == .code(0))
      }
    }
  }
}
