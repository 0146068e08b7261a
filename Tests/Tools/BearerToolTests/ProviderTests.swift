import Foundation
import TestSupport
import Testing

/// A provider that others wrote, behind Caddy.
private final class ForeignProvider: Sendable {
  struct Description: Decodable, Sendable {
    let issuer: String
    let issuers: [String: String]
    let ca_file: String
    let public_client: String?
    let confidential_client: String
    let certificate_client: String
    let cert_file: String
    let cert_key_file: String
    let secret: String
    let username: String
    let password: String
    let grants: [String]
    let redirect_ports: [Int]?
  }

  let description: Description
  /// A copy of its authority, which stays when the provider goes.
  let authority: String
  private let process: ChildProcess

  init(_ name: String, line path: String) async throws {
    process = try ChildProcess("/usr/bin/python3", [ProjectFile.path("Tests/App/Programs/providers.py"), name])
    let line = try await process.output.first("the description of \(name)", within: .seconds(60)) { $0.hasPrefix("{") }
    description = try JSONDecoder().decode(Description.self, from: Data(line.utf8))
    try Data((line + "\n").utf8).write(to: URL(fileURLWithPath: path))
    authority = path + ".ca.pem"
    try FileManager.default.copyItem(atPath: description.ca_file, toPath: authority)
  }

  func stop() async throws {
    process.closeInput()
    _ = try await process.exit()
  }

  /// The lines of an entry for the client that can do most, with the issuer of an algorithm.
  func entry(_ algorithm: String? = nil) -> [String] {
    var lines = ["issuer: \(algorithm.flatMap { description.issuers[$0] } ?? description.issuer)"]
    lines += ["ca_file: \(authority)", "scopes: [openid, offline_access]", "password_grant: true"]
    lines += ["client_id: \(description.confidential_client)", "client_secret_file: secret"]
    if let port = description.redirect_ports?.randomElement() {
      lines.append("redirect_uri: http://127.0.0.1:\(port)/callback")
    }
    return lines
  }
}

/// One suite for each provider that others wrote: `scripts/test --providers`.
@Suite(
  "bearer at providers that others wrote", .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ProcessInfo.processInfo.environment["SALLYPORT_TEST_PROVIDERS"] == "1", "scripts/test --providers"))
struct ProviderTests {
  static let deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

  private func withProvider(
    _ name: String, _ body: (BearerShell, ForeignProvider) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await ForeignProvider(name, line: folder + "/provider.json")
      let shell = BearerShell(folder)
      try shell.write(provider.description.secret + "\n", to: "secret")
      try shell.configure(["work": provider.entry()])
      let program = ProjectFile.path("Tests/App/Programs/browser.py")
      for (file, option) in [("forms", "--http"), ("chromium", "")] {
        try shell.write(
          "#!/bin/sh\nexec /usr/bin/python3 \(program) \(option) --provider \(folder)/provider.json \"$1\" >\(folder)/\(file).log 2>&1\n",
          to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder + "/" + file)
      }
      try await body(shell, provider)
      try await provider.stop()
    }
  }

  @Test(
    "C-053 and C-054 Each grant of a provider leads to tokens, which are renewed and revoked",
    arguments: ["nanoidp", "glewlwyd", "mock"])
  func grants(name: String) async throws {
    try await withProvider(name) { shell, provider in
      let known = provider.description
      let check = try await shell.run("providers check work")
      #expect(check.code == 0, "\(check)")
      let login = try await shell.run(
        "login --timeout 30 work", environment: ["BROWSER": shell.folder + "/forms"])
      #expect(
        login.code == 0, "\(login) \((try? String(contentsOfFile: shell.folder + "/forms.log", encoding: .utf8)) ?? "")"
      )
      var token = try await shell.run("token --json work")
      #expect(token.code == 0, "\(token)")
      if known.grants.contains("refresh_token") { try await renew(shell) }
      if known.grants.contains("password") {
        let password = try await shell.run("login --username \(known.username) work", input: known.password + "\n")
        #expect(password.code == 0, "\(name): \(password)")
        let wrong = try await shell.run("login --username \(known.username) work", input: "wrong\n")
        #expect(wrong.code == 77 || wrong.code == 75, "\(name): \(wrong)")
      }
      if known.grants.contains(Self.deviceGrant) { try await confirm(shell) }
      token = try await shell.run("token --json work")
      #expect(token.code == 0, "\(token)")
      let logout = try await shell.run("logout work")
      #expect(logout.code == 0, "\(logout)")
      #expect(try await shell.run("token work").fault == "not_signed_in")
    }
  }

  @Test(
    "A machine account has a token by its secret, and at glewlwyd by its certificate",
    arguments: ["nanoidp", "glewlwyd"])
  func machines(name: String) async throws {
    try await withProvider(name) { shell, provider in
      let known = provider.description
      let common = [
        "issuer: \(known.issuer)", "ca_file: \(known.ca_file)", "grant: client_credentials", "scopes: [email]",
      ]
      try shell.write("another secret\n", to: "wrong")
      try shell.configure([
        "secret": common + ["client_id: \(known.confidential_client)", "client_secret_file: secret"],
        "certificate": common + [
          "client_id: \(known.certificate_client)", "authentication: tls_client_auth", "cert_file: \(known.cert_file)",
          "key_file: \(known.cert_key_file)",
        ],
        "wrong": common + ["client_id: \(known.confidential_client)", "client_secret_file: wrong"],
        "bare": common + [
          "client_id: \(known.certificate_client)", "client_secret_file: secret", "authentication: post",
        ],
      ])
      for account in name == "glewlwyd" ? ["secret", "certificate"] : ["secret"] {
        let token = try await shell.run("token --json \(account)")
        #expect(token.code == 0, "\(account): \(token)")
        let next = try await shell.run("token --json \(account) --rejected -", input: try accessToken(token) + "\n")
        #expect(next.code == 0 && next.output != token.output, "\(account): \(next)")
      }
      let wrong = try await shell.run("token wrong")
      // glewlwyd refuses with 403 and no body.
      #expect((wrong.code == 77 || wrong.code == 75) && wrong.output.isEmpty, "\(wrong)")
      if name == "glewlwyd" { #expect(try await shell.run("token bare").code != 0) }
    }
  }

  @Test func `glewlwyd takes pushed requests, and says who the user is`() async throws {
    try await withProvider("glewlwyd") { shell, provider in
      try shell.configure(["work": provider.entry() + ["par: required"]])
      let check = try await shell.run("providers check work")
      #expect(check.code == 0 && check.output.joined().contains("pushed requests"), "\(check)")
      let login = try await shell.run(
        "login --debug --timeout 30 work", environment: ["BROWSER": shell.folder + "/forms"])
      #expect(login.code == 0 && login.errors.contains { $0.contains("/par") && $0.contains("-> 201") }, "\(login)")
      let claims = try await shell.run("userinfo work")
      #expect(claims.code == 0 && claims.output.joined().contains("user@example.com"), "\(claims)")
    }
  }

  @Test func `idpyoidc exchanges the token of an account for one of another service`() async throws {
    try await withProvider("idpy") { shell, provider in
      try shell.configure([
        "work": provider.entry().map { $0.hasPrefix("scopes:") ? "scopes: [openid, profile]" : $0 }
      ])
      // Its person is signed in already.
      try shell.write("#!/bin/sh\nexec curl -sSL --cacert \(provider.authority) \"$1\"\n", to: "curl")
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: shell.folder + "/curl")
      let login = try await shell.run("login --timeout 30 work", environment: ["BROWSER": shell.folder + "/curl"])
      #expect(login.code == 0, "\(login)")
      let own = try await shell.run("token work")
      let exchanged = try await shell.run("exchange work --audience billing --scope openid --json")
      #expect(exchanged.code == 0, "\(exchanged)")
      let token = try accessToken(exchanged)
      let claims = token.split(separator: ".").dropFirst().first.map(String.init) ?? ""
      let padded =
        claims.replacing("-", with: "+").replacing("_", with: "/")
        + String(repeating: "=", count: (4 - claims.count % 4) % 4)
      let text = String(decoding: Data(base64Encoded: padded) ?? Data(), as: UTF8.self)
      #expect(text.contains("billing") && own.output != [token], "\(text)")
      let target = try await shell.run("exchange work --audience other")
      #expect(target.code == 77 && target.fault == "invalid_target", "\(target)")
      let user = try await shell.run("userinfo work")
      #expect(user.code == 0, "\(user)")
    }
  }

  @Test("What a provider says about the user is of the one who signed in", arguments: ["nanoidp", "mock"])
  func userinfo(name: String) async throws {
    try await withProvider(name) { shell, provider in
      let login = try await shell.run("login --timeout 30 work", environment: ["BROWSER": shell.folder + "/forms"])
      #expect(login.code == 0, "\(login)")
      let claims = try await shell.run("userinfo work")
      #expect(claims.code == 0 && claims.output.joined().contains(#""sub""#), "\(claims)")
    }
  }

  /// Renews the token twice, and shows that a refresh token that was used before ends the sign-in.
  private func renew(_ shell: BearerShell) async throws {
    for _ in 0..<2 {
      let old = try await accessToken(shell.run("token --json work"))
      let new = try await shell.run("token --json work --rejected -", input: old + "\n")
      #expect(try new.code == 0 && accessToken(new) != old, "\(new)")
    }
  }

  /// The token of `token --json`, which prints one that is bound to a key, too.
  private func accessToken(_ result: BearerShell.Result) throws -> String {
    struct Printed: Decodable { let access_token: String }
    return try JSONDecoder().decode(Printed.self, from: Data(result.output.joined().utf8)).access_token
  }

  /// Signs in by the device grant, with a person who confirms it at the provider's page.
  private func confirm(_ shell: BearerShell) async throws {
    let login = try shell.start("login --device work")
    let line = try await login.errors.first("the code") { $0.hasPrefix("open ") }
    let words = line.split(separator: " ").map(String.init)
    let page = try await ChildProcess.run(
      "/usr/bin/python3",
      [
        ProjectFile.path("Tests/App/Programs/browser.py"), "--http", "--provider", shell.folder + "/provider.json",
        "--device", try #require(words.last), words[1],
      ])
    #expect(page.exit == .code(0), "\(page)")
    #expect(try await login.exit(within: .seconds(60)) == .code(0), "\(login.errors.lines)")
  }

  @Test("C-011 Chromium fills in the form", arguments: ["nanoidp", "glewlwyd", "mock"])
  func chromium(name: String) async throws {
    try await withProvider(name) { shell, _ in
      let login = try await shell.run(
        "login --timeout 90 work", environment: ["BROWSER": shell.folder + "/chromium"], within: .seconds(120))
      #expect(
        login.code == 0,
        "\(login) \((try? String(contentsOfFile: shell.folder + "/chromium.log", encoding: .utf8)) ?? "")")
    }
  }

  @Test func `an issuer with EdDSA works, too`() async throws {
    try await withProvider("glewlwyd") { shell, provider in
      try shell.configure(["work": provider.entry("EdDSA")])
      let login = try await shell.run("login --timeout 30 work", environment: ["BROWSER": shell.folder + "/forms"])
      #expect(login.code == 0, "\(login)")
    }
  }

  @Test("C-015 and C-025 Two providers at once, and failover from one to the other")
  func two() async throws {
    try await withProvider("nanoidp") { shell, first in
      let second = try await ForeignProvider("glewlwyd", line: shell.folder + "/second.json")
      try shell.configure(["work": first.entry() + ["fallbacks: [backup]"], "backup": second.entry()])
      for name in ["work", "backup"] {
        let provider = name == "work" ? first : second
        let login = try await shell.run(
          "login --username \(provider.description.username) \(name)", input: provider.description.password + "\n")
        #expect(login.code == 0, "\(name): \(login)")
      }
      let tokens = [
        try await shell.run("token --json work").output, try await shell.run("token --json backup").output,
      ]
      #expect(tokens[0] != tokens[1] && tokens.allSatisfy { $0.count == 1 })
      try await first.stop()
      let login = try await shell.run(
        "login --username \(second.description.username) work", input: second.description.password + "\n")
      #expect(login.code == 0 && login.output[0].hasPrefix("signed in at backup"), "\(login)")
      try await second.stop()
    }
  }
}
