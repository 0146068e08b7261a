import Foundation
import TestSupport
import Testing

@Suite("bearer signs in", .timeLimit(.minutes(3)))
struct LoginTests {
  @Test("C-011 and C-016 A browser brings the code, and the tokens are there")
  func browser() async throws {
    try await withHostileProvider { shell, provider in
      let login = try await shell.browse()
      #expect(login.code == 0, "\(login)")
      #expect(login.output == ["signed in at work as user 1"])
      let token = try await shell.run("token work")
      #expect(token.code == 0 && token.output.count == 1 && token.output[0].hasPrefix("ey"), "\(token)")
      let counters = try await provider.control()
      #expect(counters.grants == ["authorization_code": 1])
      // One process prints the token; the other one found it in the store.
      #expect(counters.refreshes == 0 && counters.jwks_fetches == 1)
    }
  }

  @Test("C-010 The password grant works where the entry allows it, and nowhere else")
  func password() async throws {
    try await withHostileProvider { shell, provider in
      let login = try await shell.signIn(provider)
      #expect(login.code == 0, "\(login)")
      #expect(login.errors.first?.hasPrefix("warning: the password passes through this program") == true)
      let wrong = try await shell.run("login --username user work", input: "wrong\n")
      #expect(wrong.code == 77 && wrong.fault == "invalid_grant", "\(wrong)")
      // A refused sign-in leaves the account as it was.
      #expect(try await shell.run("token work").code == 0)
      try shell.configure(["work": provider.entry().filter { $0 != "password_grant: true" }])
      let refused = try await shell.signIn(provider)
      #expect(refused.code == 64 && refused.fault == "not_offered", "\(refused)")
    }
  }

  @Test func `a provider that asks for a second factor is recognised`() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"mfa_required": true}"#)
      let login = try await shell.signIn(provider)
      #expect(login.code == 77 && login.fault == "mfa_required", "\(login)")
      #expect(
        login.errors.last
          == "hint: this provider asks for a second factor: sign in with the browser, `bearer login work`")
    }
  }

  @Test(
    "The device grant waits, slows down, and reports how it ended",
    arguments: [
      (#"{"pending": 1}"#, nil), (#"{"device_outcome": "access_denied"}"#, "access_denied"),
      (#"{"device_outcome": "expired_token"}"#, "expired_token"),
    ] as [(String, String?)])
  func device(settings: String, fault: String?) async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(settings)
      let login = try await shell.run("login --device work")
      #expect(login.fault == fault && login.code == (fault == nil ? 0 : 77), "\(login)")
      #expect(login.errors.contains { $0.hasPrefix("open \(provider.description.issuer)/device and enter ") })
    }
  }

  @Test func `the address that a browser elsewhere ends at can be pasted`() async throws {
    try await withHostileProvider { shell, provider in
      let login = try shell.start("login --paste work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let end = try await ChildProcess.run(
        "/usr/bin/curl", ["-s", "-o", "/dev/null", "-w", "%{redirect_url}", address])
      login.write(end.output[0] + "\n")
      login.closeInput()
      #expect(try await login.exit() == .code(0), "\(login.errors.lines)")
      #expect(try await shell.run("token work").code == 0)
    }
  }

  @Test(
    "An input that does not end is waited for as long as --timeout says, also after its first bytes",
    arguments: [
      ("login --timeout 3 --paste work", "http://", "no address was pasted"),
      ("login --timeout 3 --username user work", "pass", "no password was given"),
    ])
  func endlessInput(line: String, input: String, what: String) async throws {
    try await withHostileProvider { shell, _ in
      let login = try shell.start(line)
      login.write(input)
      #expect(try await login.exit() == .code(75), "\(login.errors.lines)")
      let errors = try await login.errors.all()
      #expect(errors.contains("error: no_answer: \(what) within 3 s"), "\(errors)")
    }
  }

  @Test func `a nonce is refused where no ID token can have it, before an address is shown`() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      try shell.configure([
        "forge": [
          "type: oauth2", "token_endpoint: http://127.0.0.1:1/token",
          "authorization_endpoint: http://127.0.0.1:1/authorize", "client_id: c",
        ]
      ])
      let login = try await shell.run("login --nonce n --paste forge")
      #expect(login.code == 64 && login.fault == "not_offered" && login.errors[0].contains("--nonce"), "\(login)")
    }
  }

  @Test(
    "C-020 A client authenticates as its entry says", arguments: ["basic", "post", "private_key_jwt"])
  func authentication(way: String) async throws {
    try await withHostileProvider { shell, provider in
      let known = provider.description
      try shell.write(known.secret + "\n", to: "secret")
      try shell.write(try String(contentsOfFile: known.key_file, encoding: .utf8), to: "key.pem")
      let entry =
        switch way {
        case "basic": ["client_id: \(known.confidential_client)", "client_secret_file: secret"]
        case "post": ["client_id: \(known.post_client)", "client_secret_file: secret", "authentication: post"]
        default:
          ["client_id: \(known.key_client)", "private_key_file: key.pem", "authentication: private_key_jwt"]
        }
      try shell.configure(["work": ["issuer: \(known.issuer)", "dpop: off"] + entry])
      let login = try await shell.browse()
      #expect(login.code == 0, "\(login)")
      try await provider.control(#"{"fault": "invalid_client"}"#)
      let refused = try await shell.browse()
      #expect(refused.code == 77 && refused.fault == "invalid_client", "\(refused)")
    }
  }

  @Test func `tokens are bound to a key where the provider offers it, and a header proves it`() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"dpop_nonce": true}"#)
      try shell.configure(["work": provider.entry().filter { $0 != "dpop: off" }])
      let login = try await shell.browse("login --json --timeout 90 work")
      #expect(login.code == 0 && login.output[0].contains(#""bound_to_key":true"#), "\(login)")
      try await provider.control(#"{"dpop_nonce": false}"#)
      let address = provider.description.issuer + "/userinfo"
      let header = try await shell.run("token work --header GET \(address)")
      #expect(header.output.map { $0.prefix { $0 != ":" } } == ["Authorization", "DPoP"], "\(header)")
      // A service may ask for a nonce, which is then in the proof.
      let proof = try await shell.run("token work --header GET \(address) --dpop-nonce n-1").output.last ?? ""
      var claims = proof.split(separator: ".").dropFirst().first.map { String($0).replacing("-", with: "+") } ?? ""
      claims = claims.replacing("_", with: "/") + String(repeating: "=", count: (4 - claims.count % 4) % 4)
      let text = String(decoding: Data(base64Encoded: claims) ?? Data(), as: UTF8.self)
      #expect(text.contains(#""nonce":"n-1""#), "\(proof)")
      for wrong in ["token work --dpop-nonce n", #"token work --header GET \#(address) --dpop-nonce a"b"#] {
        #expect(try await shell.run(wrong).code == 64)
      }
      let user = try await ChildProcess.run(
        "/usr/bin/curl", ["-s", "-H", "@-", address], input: Array(header.output.joined(separator: "\n").utf8))
      #expect(user.output.joined().contains("user@example.com"), "\(user)")
      // The token alone is of no use, so that $(…) gets none.
      let token = try await shell.run("token work")
      #expect(token.code == 64 && token.fault == "token_bound" && token.output.isEmpty, "\(token)")
      #expect(token.errors.last?.contains("bearer token work --header METHOD URL") == true, "\(token)")
      let bare = try #require(header.output.first?.split(separator: " ").last)
      let alone = try await ChildProcess.run("/usr/bin/curl", ["-s", "-H", "Authorization: Bearer \(bare)", address])
      #expect(alone.output.joined().contains("invalid_token"), "\(alone)")
    }
  }

  @Test("C-026 Logout revokes the tokens, deletes them, and names the page that ends the session")
  func logout() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      let logout = try await shell.run("logout work")
      #expect(logout.code == 0, "\(logout)")
      #expect(
        logout.output
          == ["the session in the browser ends at \(provider.description.issuer)/end_session?client_id=public-client"])
      #expect(try await provider.control().revoked_families == 1)
      let token = try await shell.run("token work")
      #expect(token.code == 77 && token.fault == "not_signed_in", "\(token)")
      // The tokens go even where the provider is gone.
      try await shell.signIn(provider)
      try await provider.stop()
      let offline = try await shell.run("logout work")
      #expect(offline.code == 0 && offline.errors.first?.hasPrefix("warning: not revoked") == true, "\(offline)")
      #expect(try await shell.run("status").output == ["work  signed out"])
    }
  }

  @Test("A folder that cannot take the tokens is found before the sign-in begins")
  func unusableStore() async throws {
    try await withHostileProvider { shell, provider in
      try shell.write("", to: "store")
      let login = try await shell.run("login --username user work", input: "password-of-the-user-42\n")
      #expect(login.code == 73 && login.errors.last?.contains(shell.folder + "/store") == true, "\(login)")
      #expect(try await provider.control().grants.isEmpty)
    }
  }

  @Test("An account whose entry has gone is signed out here, with a warning that its tokens were not revoked")
  func entryGone() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      try shell.configure(["other": provider.entry()])
      #expect(try await shell.run("status").output.contains { $0.hasPrefix("work ") })
      let logout = try await shell.run("logout work")
      #expect(logout.code == 0 && logout.errors.first?.hasPrefix("warning: not revoked") == true, "\(logout)")
      #expect(try await shell.run("status").output == ["other  signed out"])
      #expect(try await shell.run("logout work").code == 64)
    }
  }

  @Test("An account whose file cannot be read does not hide the others")
  func unreadable() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      func files() throws -> Set<String> {
        let names = try FileManager.default.contentsOfDirectory(atPath: shell.folder + "/store")
        return Set(names.filter { $0.hasSuffix(".tokens") })
      }
      let first = try #require(try files().first)
      try await shell.signIn(provider, "--account b work")
      let second = try #require(try files().subtracting([first]).first)
      let path = shell.folder + "/store/"
      // The configuration has the name of the first one.
      let content = try Data(contentsOf: URL(fileURLWithPath: path + first))
      try shell.write("damaged", to: "store/" + first)
      let status = try await shell.run("status")
      #expect(status.code == 65 && status.fault == "store_unusable", "\(status)")
      #expect(
        status.output.count == 2 && status.output[0].hasPrefix("work    unreadable: \(path)\(first)"), "\(status)")
      #expect(status.output.last?.hasPrefix("work/b  valid for") == true, "\(status)")
      // No other place has that of the second one.
      try content.write(to: URL(fileURLWithPath: path + first))
      try shell.write("damaged", to: "store/" + second)
      let unnamed = try await shell.run("status")
      #expect(unnamed.code == 65 && unnamed.output.count == 2, "\(unnamed)")
      #expect(unnamed.output.first?.hasPrefix("work  valid for") == true, "\(unnamed)")
      #expect(unnamed.output.last == "?     unreadable: \(path)\(second)", "\(unnamed)")
      let json = try await shell.run("status --json")
      #expect(json.code == 65 && json.output[0].contains("unreadable: "), "\(json)")
      // Without the key there is nothing to show.
      try FileManager.default.removeItem(atPath: path + "key")
      let keyless = try await shell.run("status")
      #expect(keyless.code == 65 && keyless.output.isEmpty, "\(keyless)")
    }
  }

  @Test("C-025 and C-054 The next provider is asked when the first cannot be reached, and only then")
  func failover() async throws {
    try await withHostileProvider { shell, provider in
      let other = try await HostileProvider()
      // The files of the provider go when it ends.
      let (certificateFile, keyFile) = (shell.folder + "/backup.pem", shell.folder + "/backup.key")
      try FileManager.default.copyItem(atPath: other.description.cert_file, toPath: certificateFile)
      try FileManager.default.copyItem(atPath: other.description.cert_key_file, toPath: keyFile)
      let certificate = ["cert_file: \(certificateFile)", "key_file: \(keyFile)"]
      try shell.configure(["work": provider.entry("fallbacks: [backup]"), "backup": other.entry() + certificate])
      try await provider.control(#"{"fault": "invalid_grant"}"#)
      let refused = try await shell.signIn(provider)
      #expect(refused.fault == "invalid_grant", "\(refused)")
      #expect(try await other.control().grants.isEmpty)
      try await provider.stop()
      let login = try await shell.signIn(provider)
      #expect(login.code == 0 && login.output == ["signed in at backup as user 1"], "\(login)")
      // The tokens are renewed where they came from.
      let rejected = try await shell.run("token work")
      let token = try await shell.run("token work --rejected -", input: rejected.output[0] + "\n")
      #expect(token.code == 0 && token.output != rejected.output, "\(token)")
      #expect(try await other.control().refreshes == 1)
      // curl presents the certificate of the provider that issued them.
      let line = "cert = \"\(certificateFile)\""
      #expect(try await shell.run("token work --output curl").output.contains(line))
      #expect(try await shell.run("exec work -- sh -c", "cat $BEARER_CURL_CONFIG").output.contains(line))
      // So is the page that ends the session in the browser.
      let logout = try await shell.run("logout work")
      #expect(logout.output.first?.contains(other.description.issuer + "/end_session") == true, "\(logout)")
      // Errors name that provider.
      try await shell.signIn(provider)
      let present = try await shell.run("token work").output
      try await other.stop()
      let gone = try await shell.run("token work --rejected -", input: present[0] + "\n")
      #expect(gone.errors.first?.contains(": backup: ") == true, "\(gone)")
    }
  }
}
