import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("Administering accounts by commands", .serialized, .timeLimit(.minutes(5)))
struct AdminCommandTests {
  @Test("a command that changes an account says what it did")
  func reports() async throws {
    try await BackendInstallation.make { place in
      let phone = TestPhone(username: "ada")
      try await place.enrol(phone)
      for (command, output) in [
        (["lock", "ada"], "locked ada and ended its sessions"), (["lock", "ADA"], "ada was locked already"),
        (["unlock", "ada"], "unlocked ada and reset its lockouts"),
        (["unlock", "ada"], "ada was not locked; reset its lockouts"),
        (["end-sessions", "ada"], "ada had no sessions"),
        (["grant", "ada"], "ada is an admin now"), (["grant", "ada"], "ada was an admin already"),
        (["revoke", "ada"], "ada is no admin any more"), (["revoke", "ada"], "ada was no admin"),
        (["remove-device", "ada", "--device", phone.deviceID], "removed the device \(phone.deviceID) of ada"),
      ] {
        let run = try await ChildProcess.run(
          Places.product("mfa-backend"), ["admin"] + command + ["-c", place.file])
        #expect(run.exit == .code(0) && run.output == [output] && run.errors == [], "\(command): \(run)")
      }
      // The output of this one is its code, for scripts.
      let code = try await place.operate("admin", "reset", "ada")
      #expect(code.exit == .code(0) && code.output.count == 1 && code.output[0].utf8.count == 8, "\(code)")
    }
  }

  @Test("with --json each result is one line of JSON, in the words of the REST interface")
  func json() async throws {
    try await BackendInstallation.make { place in
      let phone = TestPhone(username: "ada")
      try await place.enrol(phone)
      for (command, words) in [
        (["admin", "users"], [#""username":"ada""#, #""locked":false"#, "\"devices\":[\"\(phone.deviceID)\"]"]),
        (["admin", "show", "ada"], [#""model":"iPhone 15 Pro""#, #""sessions":[]"#, #""username":"ada""#]),
        (["admin", "users", "--state", "admin"], []), (["admin", "users", "--search", "DA"], [#""username":"ada""#]),
        (["audit", "search", "--account", "ADA", "--event", "device"], [#""event":"device.enrolled""#]),
        (["admin", "end-sessions", "ada"], [#"{"changed":false,"username":"ada"}"#]),
        (["admin", "lock", "ada"], [#"{"changed":true,"username":"ada"}"#]),
        (["admin", "lock", "ada"], [#"{"changed":false,"username":"ada"}"#]),
        (["admin", "unlock", "ada"], [#"{"changed":true,"username":"ada"}"#]),
        (["admin", "grant", "ada"], [#"{"changed":true,"username":"ada"}"#]),
        (["admin", "revoke", "ada"], [#"{"changed":true,"username":"ada"}"#]),
        (["admin", "history", "ada", "--last", "1"], [#""event":"user.role_changed""#, #""sequence":"#]),
        (["admin", "reset", "ada"], [#""temporaryCode":""#, #""expiresIn":1800"#]),
        (["admin", "tables", "--development"], [#"{"name":"audit","rows":"#]),
        (["audit", "verify"], [#""hash":""#, #""sequence":"#]), (["keys", "rotate"], [#"{"resealed":"#]),
      ] {
        let run = try await ChildProcess.run(
          Places.product("mfa-backend"), command + ["--json", "-c", place.file])
        let lines = run.output.filter { $0.hasPrefix("{") && $0.hasSuffix("}") }
        #expect(run.exit == .code(0) && lines == run.output && run.errors == [], "\(command): \(run)")
        for word in words { #expect(lines.contains { $0.contains(word) }, "\(command): \(word) in \(run)") }
      }
    }
  }

  @Test(
    "An account that does not exist is missing input, which a script can tell from a problem",
    arguments: [
      ["lock", "bob"], ["history", "bob"], ["remove-device", "ada", "--device", "none"], ["reset", "bob"],
    ])
  func unknown(command: [String]) async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let run = try await ChildProcess.run(Places.product("mfa-backend"), ["admin"] + command + ["-c", place.file])
      // The history outlasts its account, so that of an unknown name is empty.
      let isHistory = command[0] == "history"
      #expect(run.exit == .code(isHistory ? 0 : 66) && run.output == [], "\(run)")
      #expect(isHistory || run.errors.first == "error: no such account or device", "\(run)")
    }
  }

  @Test("an account whose name today's rule refuses is named by its id, which the list has as JSON")
  func keptName() async throws {
    try await BackendInstallation.make { place in
      let phone = TestPhone(username: "bob")
      try await place.enrol(phone)
      _ = try await BackendInstallation.sql(
        "UPDATE users SET username = ' bob ', name_key = ' bob ' WHERE name_key = 'bob'", place.folder + "/mfa.db")
      let named = try await place.operate("admin", "lock", " bob ")
      #expect(named.exit == .code(1) && named.errors.last?.contains("--id") == true, "\(named)")
      #expect(try await place.operate("admin", "lock", "bob").exit == .code(66))
      let list = try #require(try await place.operate("admin", "users", "--json").output.first)
      let id = try #require(list.firstMatch(of: /"id":"([^"]+)"/)?.1)
      for (command, output) in [
        (["lock"], #"locked " bob " and ended its sessions"#),
        (["unlock"], #"unlocked " bob " and reset its lockouts"#),
        (["end-sessions"], #"" bob " had no sessions"#), (["grant"], #"" bob " is an admin now"#),
        (["revoke"], #"" bob " is no admin any more"#),
        (["remove-device", "--device", phone.deviceID], #"removed the device \#(phone.deviceID) of " bob ""#),
      ] {
        let run = try await ChildProcess.run(
          Places.product("mfa-backend"), ["admin"] + command + ["--id", String(id), "-c", place.file])
        #expect(run.exit == .code(0) && run.output == [output] && run.errors == [], "\(command): \(run)")
      }
      let history = try await place.operate("admin", "history", "--id", String(id))
      #expect(history.output.count { $0.contains("user.locked") } == 1, "\(history)")
      #expect(try await place.operate("admin", "show", "--id", String(id)).exit == .code(0))
      #expect(try await place.operate("admin", "reset", "--id", String(id)).output.first?.utf8.count == 8)
      let none = try await place.operate("admin", "cancel-recovery", "--id", String(id))
      #expect(none.exit == .code(66) && none.errors.first == "error: no recovery of \(id) is open", "\(none)")
      // Neither, both, no id at all, and the id of no account.
      for (wrong, code) in [
        ([], 64), (["bob", "--id", String(id)], 64), (["--id", "bob"], 64),
        (["--id", "00000000-0000-4000-8000-000000000000"], 66),
      ] as [([String], Int32)] {
        let run = try await ChildProcess.run(
          Places.product("mfa-backend"), ["admin", "lock"] + wrong + ["-c", place.file])
        #expect(run.exit == .code(code), "\(wrong): \(run)")
      }
    }
  }

  @Test("a list quotes a name that could be read as something else, and escapes what a terminal would not show")
  func quotedNames() async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let file = "\(place.folder)/mfa.db"
      for (name, shown) in [
        // Each an expression of SQL, as an older version accepted it.
        ("'ada devices=9 admin'", #""ada devices=9 admin""#), ("'zoe' || char(65039)", #""zoe\u{FE0F}""#),
        ("'zoe' || char(8232) || 'bob'", #""zoe\u{2028}bob""#), ("'a\"b\\c'", #""a\"b\\c""#),
        ("'zoe' || char(8238)", #""zoe\u{202E}""#), ("'zoe' || char(155) || '2J'", #""zoe\u{9B}2J""#),
        ("'o''brien@example.com'", "o'brien@example.com"), ("'Zo' || char(235)", "Zo\u{EB}"), ("'-x'", "-x"),
      ] {
        _ = try await BackendInstallation.sql("UPDATE users SET username = \(name)", file)
        #expect(try await place.users() == ["\(shown) devices=1"])
      }
      // An export is JSON, and no terminal is steered by it.
      _ = try await BackendInstallation.sql("UPDATE users SET username = 'zoe' || char(8238)", file)
      let rows = try await place.operate("admin", "rows", "users", "--development")
      #expect(rows.output.count == 1 && rows.output[0].contains(#""zoe\u202e""#), "\(rows)")
      _ = try await BackendInstallation.sql("UPDATE audit SET account = 'zoe' || char(8238)", file)
      let history = try await place.operate("audit", "export")
      #expect(!history.output.isEmpty && history.exit == .code(0), "\(history)")
      #expect(history.output.allSatisfy { $0.contains(#""account":"zoe\u202e""#) }, "\(history)")
    }
  }
}
