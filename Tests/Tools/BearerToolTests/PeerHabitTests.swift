import Foundation
import TestSupport
import Testing

/// A provider with the habits of real ones, one at a time. The program stands next to the project.
private enum HabitProvider {
  static let absence: Comment = "\(SharedWorld.absence("idp"))"
  static let program = SharedWorld.path("idp/quirky_idp.py")
  static let isPresent = FileManager.default.fileExists(atPath: program)

  /// Calls `body` with a `bearer` that has the provider as `idp`, and with a way to start the provider again with other
  /// habits at the same place.
  static func with(
    _ habits: String, _ more: String..., body: (BearerShell, (String) async throws -> Void) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let port = try Places.freePort()
      let shell = BearerShell(folder)
      let entry = ["issuer: http://127.0.0.1:\(port)", "client_id: cli", "scopes: [openid, offline_access]"] + more
      try shell.configure(["idp": more.contains { $0.hasPrefix("dpop") } ? entry : entry + ["dpop: off"]])
      try shell.write("#!/bin/sh\nexec curl -sL -b '' --max-time 20 -o /dev/null \"$1\"\n", to: "browser")
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder + "/browser")
      var running: ChildProcess?
      func start(_ habits: String) async throws {
        running?.kill()
        _ = try await running?.exit()
        let process = try ChildProcess(
          "/usr/bin/python3", [program], environment: ["QUIRKS": habits, "PORT": "\(port)", "CLIENT": "cli"])
        running = process
        _ = try await process.output.first("the provider") { $0.hasPrefix("issuer ") }
        // It prints before it listens.
        _ = try await ChildProcess.run(
          "/usr/bin/curl",
          [
            "-s", "--retry", "50", "--retry-delay", "0", "--retry-connrefused", "-o", "/dev/null",
            "http://127.0.0.1:\(port)/jwks",
          ])
      }
      try await start(habits)
      do { try await body(shell, start) } catch {
        running?.kill()
        throw error
      }
      running?.kill()
      _ = try await running?.exit()
    }
  }
}

@Suite(
  "bearer at a provider with the habits of real ones", .timeLimit(.minutes(4)),
  .enabled(if: HabitProvider.isPresent, HabitProvider.absence))
struct PeerHabitTests {
  @Test(
    "A habit with one meaning is no obstacle to a sign-in",
    arguments: [
      ("", "login --timeout 90 idp"), ("google-device", "login --device idp"), ("string-times", "login --device idp"),
      ("google-device,string-times", "login --device idp"), ("scope-array", "login --timeout 90 idp"),
      ("empty-endpoint", "login --timeout 90 idp"), ("es512", "login --timeout 20 idp"),
      ("ed25519", "login --timeout 90 idp"), ("late-clock", "login --timeout 20 idp"),
    ])
  func signsIn(habit: String, line: String) async throws {
    try await HabitProvider.with(habit) { shell, _ in
      let check = try await shell.run("providers check idp")
      #expect(check.code == 0, "\(check)")
      let login = try await shell.browse(line)
      #expect(login.code == 0 && login.output == ["signed in at idp as ada"], "\(login)")
      let token = try await shell.run("token idp")
      #expect(token.code == 0 && token.output.count == 1, "\(token)")
    }
  }

  @Test("A token without a lifetime is used until a service refuses it", arguments: ["no-expiry", "zero-expiry"])
  func openEnded(habit: String) async throws {
    try await HabitProvider.with(habit) { shell, _ in
      let login = try await shell.browse("login --json --timeout 90 idp")
      #expect(login.code == 0 && !login.output.joined().contains("expires_at"), "\(login)")
      #expect(try await shell.run("status").output == ["idp  valid until a service refuses it  ada"])
      let token = try #require(try await shell.run("token idp").output.first)
      #expect(try await shell.run("token --json idp").output.first?.contains("expires_at") == false)
      let rejected = try await shell.run("token idp --rejected -", input: token + "\n")
      #expect(rejected.code == 77 && rejected.fault == "token_expired", "\(rejected)")
    }
  }

  @Test func `further audiences are refused with the setting that trusts them, and no others`() async throws {
    try await HabitProvider.with("zitadel-aud") { shell, _ in
      let refused = try await shell.browse("login --timeout 90 idp")
      #expect(refused.code == 77 && refused.fault == "wrong_audience", "\(refused)")
      let setting = #"trusted_audiences: ["383168317235462148", "sibling"]"#
      #expect(refused.errors.last?.hasSuffix(setting) == true, "\(refused)")
      let file = shell.folder + "/bearer.yaml"
      let text = try String(contentsOfFile: file, encoding: .utf8)
      try shell.write(text + "    trusted_audiences: [sibling]\n", to: "bearer.yaml")
      let half = try await shell.browse("login --timeout 90 idp")
      #expect(half.code == 77 && half.errors.last?.contains(#"["sibling", "383168317235462148"]"#) == true, "\(half)")
      try shell.write(text + "    \(setting)\n", to: "bearer.yaml")
      let login = try await shell.browse("login --timeout 90 idp")
      #expect(login.code == 0, "\(login)")
    }
  }

  @Test func `a page of a proxy does not end the session`() async throws {
    try await HabitProvider.with("html-400") { shell, start in
      #expect(try await shell.browse("login --timeout 90 idp").code == 0)
      let old = try #require(try await shell.run("token idp").output.first)
      let page = try await shell.run("token idp --rejected -", input: old + "\n")
      #expect(page.code == 75 && page.fault == "server_error", "\(page)")
      #expect(page.errors.last?.hasPrefix("hint: try again later") == true, "\(page)")
      try await start("")
      let renewed = try await shell.run("token idp --rejected -", input: old + "\n")
      #expect(renewed.code == 0 && renewed.output != [old], "\(renewed)")
    }
  }

  @Test func `an error code may have a space`() async throws {
    try await HabitProvider.with("spaced-error") { shell, _ in
      let login = try await shell.browse("login --timeout 90 idp")
      #expect(login.code == 77 && login.fault == "access denied", "\(login)")
      #expect(login.errors.last == "hint: the sign-in was declined", "\(login)")
    }
  }

  @Test func `a document of another issuer is refused as before`() async throws {
    try await HabitProvider.with("b2c-issuer") { shell, _ in
      let login = try await shell.browse("login --timeout 90 idp")
      #expect(login.code == 76 && login.fault == "discovery_of_another_issuer", "\(login)")
    }
  }

  @Test func `a clock that is further off than the entry allows is refused with the setting`() async throws {
    try await HabitProvider.with("late-clock", "clock_skew: 60s") { shell, _ in
      let login = try await shell.browse("login --timeout 90 idp")
      #expect(login.code == 77 && login.fault == "wrong_issue_time", "\(login)")
      #expect(login.errors.last?.contains("clock_skew") == true, "\(login)")
    }
  }

  @Test func `a redirect to localhost without a port works`() async throws {
    try await HabitProvider.with("", "redirect_uri: http://localhost/callback") { shell, _ in
      let login = try await shell.browse("login --timeout 90 idp")
      #expect(login.code == 0, "\(login)")
    }
  }

  @Test func `a bound token is not printed alone, and with its proof`() async throws {
    try await HabitProvider.with("dpop", "dpop: auto") { shell, _ in
      #expect(try await shell.browse("login --timeout 90 idp").code == 0)
      let alone = try await shell.run("token idp")
      #expect(alone.code == 64 && alone.fault == "token_bound" && alone.output.isEmpty, "\(alone)")
      let header = try await shell.run("token idp --header GET https://api.example.com/ --dpop-nonce n-1")
      #expect(header.output.map { $0.prefix { $0 != ":" } } == ["Authorization", "DPoP"], "\(header)")
      let whole = try await shell.run("token --json idp")
      #expect(whole.code == 0 && whole.output.joined().contains(#""token_type":"DPoP""#), "\(whole)")
    }
  }

  @Test func `twenty processes at once send one refresh for a token of a minute`() async throws {
    try await HabitProvider.with("") { shell, _ in
      #expect(try await shell.browse("login --timeout 90 idp").code == 0)
      let old = try #require(try await shell.run("token idp").output.first)
      try shell.write(old + "\n", to: "old")
      let processes = try (0..<20).map { _ in try shell.start("token idp --rejected old") }
      var tokens: Set<String> = []
      for process in processes {
        #expect(try await process.exit() == .code(0), "\(process.errors.lines)")
        tokens.formUnion(try await process.output.all())
      }
      #expect(tokens.count == 1 && !tokens.contains(old))
    }
  }

  @Test func `parameters of the entry and of the command are in the address that the browser goes to`() async throws {
    try await HabitProvider.with("", #"parameters: { audience: "https://api.example", prompt: login }"#) { shell, _ in
      let login = try shell.start("login --no-browser --timeout 90 --parameter prompt=none --parameter a=b idp")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let next = try await ChildProcess.run(
        "/usr/bin/curl", ["-s", "-o", "/dev/null", "-w", "%{redirect_url}", address])
      let target = next.output.joined()
      for part in ["audience=https%3A%2F%2Fapi.example", "prompt=none", "a=b"] {
        #expect(target.contains("&" + part), "\(target)")
      }
      #expect(!target.contains("prompt=login"))
      login.kill()
      for wrong in ["state=x", "prompt", "=x"] {
        #expect(try await shell.run("login idp --parameter \(wrong)").code == 64, "\(wrong)")
      }
    }
  }
}
