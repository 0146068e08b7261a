import Foundation
import TestSupport
import Testing

/// An authorization server that authenticates clients with the verifier of the documents, and an attester.
private struct AttestedProvider {
  static let program = ProjectFile.path("Tests/Tools/Programs/attested_provider.py")
  private static let article = ProjectFile.path("Sources/Gate/GateService/GateService.docc/ClientAttestations.md")

  let shell: BearerShell
  let issuer: String
  private let process: ChildProcess

  /// Starts the server, and configures `bearer` for it.
  init(_ folder: String, server: [String] = [], attester: [String] = [], entry: [String] = []) async throws {
    shell = BearerShell(folder)
    let python = try Places.tool("python3")
    let attest = [Self.program, "attest", folder, "wallet"] + attester
    // The server reads the attester's keys once, at its start.
    let made = try await ChildProcess.run(python, attest, within: .seconds(60))
    #expect(made.exit == .code(0), "\(made)")
    try FileManager.default.removeItem(atPath: folder + "/calls")
    process = try ChildProcess(
      python, [Self.program, "serve", Self.article, "file://\(folder)/jwks.json", "attester"] + server)
    do {
      issuer = String(try await process.output.first("the server") { $0.hasPrefix("issuer ") }.dropFirst(7))
    } catch {
      Issue.record("\(process.errors.lines)")
      throw error
    }
    let words = ([python] + attest).map { "\"\($0)\"" }.joined(separator: ", ")
    try shell.configure([
      "wallet": [
        "issuer: \(issuer)", "client_id: wallet", "grant: client_credentials", "authentication: attestation",
        "attestation_command: [\(words)]", "attestation_key_file: client.pem",
      ] + entry
    ])
  }

  /// What the server has accepted and refused.
  func seen() async throws -> [String: Any] {
    let run = try await ChildProcess.run(Places.tool("curl"), ["-s", issuer + "/control"])
    return try #require(JSONSerialization.jsonObject(with: Data(run.output.joined().utf8)) as? [String: Any])
  }

  func calls() throws -> Int {
    try String(contentsOfFile: shell.folder + "/calls", encoding: .utf8).split(separator: "\n").count
  }

  func stop() async throws {
    process.kill()
    _ = try await process.exit()
  }
}

@Suite("bearer as an attested client", .timeLimit(.minutes(3)))
struct AttestedClientTests {
  private func serving(
    _ server: [String], attester: [String] = [], _ entry: String..., body: (AttestedProvider) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await AttestedProvider(folder, server: server, attester: attester, entry: entry)
      do { try await body(provider) } catch {
        try await provider.stop()
        throw error
      }
      try await provider.stop()
    }
  }

  @Test(
    "Both proofs, with a challenge from the endpoint or an answer, lead to a token",
    arguments: [
      (["--methods", "attest_jwt_client_auth"], "dpop: off", 1, false),
      (["--challenge", "endpoint"], "dpop: off", 1, false), (["--challenge", "answer"], "dpop: off", 2, false),
      (["--fresh", "1"], "dpop: off", 2, false), (["--methods", "attest_jwt_client_auth_dpop"], "dpop: auto", 1, true),
      (["--methods", "attest_jwt_client_auth_dpop", "--nonce"], "dpop: required", 2, true),
      (["--methods", "attest_jwt_client_auth_dpop", "--challenge", "endpoint", "--nonce"], "dpop: auto", 1, true),
    ])
  func accepted(server: [String], entry: String, requests: Int, isCombined: Bool) async throws {
    try await serving(server, entry) { provider in
      let shell = provider.shell
      let check = try await shell.run("providers check wallet")
      #expect(check.code == 0 && check.output.contains { $0.contains("client attestations") }, "\(check)")
      let token = try await shell.run("token --json wallet")
      #expect(token.code == 0 && token.output.joined().contains("token-client_credentials-1"), "\(token)")
      let seen = try await provider.seen()
      let accepted = try #require(seen["accepted"] as? [[String: Any]])
      #expect(accepted.count == 1 && accepted[0]["client"] as? String == "wallet", "\(seen)")
      #expect(accepted[0]["combined"] as? Bool == isCombined)
      #expect((seen["paths"] as? [String: Int])?["/token"] == requests, "\(seen)")
      // The attestation serves all requests of one call, and the stored token the next call.
      #expect(try provider.calls() == (server.first == "--fresh" ? 2 : 1))
      #expect(try await shell.run("token --json wallet").code == 0)
      #expect((try await provider.seen()["paths"] as? [String: Int])?["/token"] == requests)
    }
  }

  @Test("What the server refuses, and what is unusable before it is sent, each have their code")
  func refused() async throws {
    try await serving(["--fresh", "9"], "dpop: off") { provider in
      let old = try await provider.shell.run("token wallet")
      #expect(old.code == 77 && old.fault == "use_fresh_attestation", "\(old)")
    }
    try await serving([], attester: ["--lifetime", "-5"], "dpop: off") { provider in
      let ended = try await provider.shell.run("token wallet")
      #expect(ended.code == 78 && ended.fault == "client_attestation_unusable", "\(ended)")
      #expect(ended.errors[0].contains("has ended"))
    }
    try await serving([], attester: ["--other-key"], "dpop: off") { provider in
      let other = try await provider.shell.run("token wallet")
      #expect(other.code == 78 && other.errors[0].contains("another key"), "\(other)")
      #expect((try await provider.seen()["paths"] as? [String: Int])?.isEmpty == true)
    }
    // An attester that the server does not know.
    try await serving([], "dpop: off") { provider in
      try FileManager.default.removeItem(atPath: provider.shell.folder + "/attester.pem")
      let stranger = try await provider.shell.run("token wallet")
      #expect(stranger.code == 77 && stranger.fault == "invalid_client_attestation", "\(stranger)")
    }
  }

  @Test("A token that is bound to no key is exchanged for one that is bound to the key of the combined proof")
  func exchange() async throws {
    try await serving(["--methods", "attest_jwt_client_auth_dpop"]) { provider in
      let run = try await provider.shell.run("exchange wallet --json --subject-token -", input: "subject")
      #expect(run.code == 0 && run.output.joined().contains(#""token_type":"DPoP""#), "\(run)")
      let plain = try await provider.shell.run("exchange wallet --subject-token -", input: "subject")
      #expect(plain.fault == "token_bound" && plain.errors.last?.contains("attestation_key_file") == true, "\(plain)")
    }
  }

  @Test("The program and its children end with bearer")
  func end() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = try Self.shell(folder, "(exec 9>lock; flock 9; : >locked; sleep 600) & sleep 600")
      // Without a terminal, as under a service manager.
      let bearer = try ChildProcess(
        "/usr/bin/setsid", [try Places.product("bearer"), "token", "wallet"], environment: shell.environment,
        in: folder)
      let end = ContinuousClock.now + .seconds(60)
      while !FileManager.default.fileExists(atPath: folder + "/locked"), ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(5))
      }
      bearer.send(SIGTERM)
      #expect(try await bearer.exit() == .signal(SIGTERM), "\(bearer.errors.lines)")
      let lock = try await ChildProcess.run("/usr/bin/flock", ["-w", "30", folder + "/lock", "true"], in: folder)
      #expect(lock.exit == .code(0), "a child lives on")
    }
  }

  @Test("A program can ask at the terminal")
  func question() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = try Self.shell(folder, "printf 'PIN: ' >/dev/tty; read pin </dev/tty; echo got $pin >&2; exit 3")
      try await Tmux.withTerminal(in: folder) { tmux in
        try await tmux.start("\(try Places.product("bearer")) token wallet", shell.environment)
        try await tmux.screen(with: "PIN:")
        try await tmux.press("1234", "Enter")
        let screen = try await tmux.screen(with: "ended with exit code 3")
        #expect(screen.contains { $0.hasPrefix("got 1234") }, "\(screen)")
      }
    }
  }

  /// A configuration whose attestations a script prints.
  private static func shell(_ folder: String, _ script: String) throws -> BearerShell {
    let shell = BearerShell(folder)
    try shell.write(script, to: "attester")
    try shell.configure([
      "wallet": [
        "type: oauth2", "token_endpoint: http://127.0.0.1:1/token", "issuer: http://127.0.0.1:1", "client_id: wallet",
        "grant: client_credentials", "authentication: attestation",
        "attestation_command: [/bin/sh, \(folder)/attester]",
        "attestation_key_file: client.pem",
      ]
    ])
    return shell
  }

  @Test("A program that fails, is missing or prints something else, and a key that others can read, are named")
  func programs() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      let attester = ["attest", folder, "wallet"]
      let made = try await ChildProcess.run(try Places.tool("python3"), [AttestedProvider.program] + attester)
      #expect(made.exit == .code(0), "\(made)")
      for (program, part) in [
        ("[/bin/sh, -c, 'echo why >&2; exit 3']", "ended with exit code 3"),
        ("[no-such-program]", "cannot start no-such-program"),
        ("[/bin/echo, hello]", "no signed JWT"), ("[/usr/bin/yes]", "printed more than an attestation"),
        ("[/bin/sh, -c, 'kill -9 $$']", "ended by signal 9"), ("[/bin/echo, a.b.c]", "no signed JWT"),
      ] {
        try shell.configure([
          "wallet": [
            "type: oauth2", "token_endpoint: http://127.0.0.1:1/token", "issuer: http://127.0.0.1:1",
            "client_id: wallet",
            "grant: client_credentials", "authentication: attestation", "attestation_command: \(program)",
            "attestation_key_file: client.pem",
          ]
        ])
        let run = try await shell.run("token wallet")
        let text = run.errors.first { $0.hasPrefix("error: ") } ?? ""
        #expect(run.code == 78 && run.fault == "client_attestation_unusable", "\(run)")
        #expect(text.contains(part) && (!part.hasSuffix("code 3") || run.errors.first == "why"), "\(run)")
      }
      func fault(_ part: String) async throws {
        let run = try await shell.run("token wallet")
        #expect(run.fault == "client_attestation_unusable" && run.errors[0].contains(part), "\(run)")
      }
      let key = folder + "/client.pem"
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
      try await fault("group or others can read or change \(key)")
      try shell.write("x", to: "client.pem")
      try await fault("\(key) has no private key on P-256")
      try FileManager.default.removeItem(atPath: key)
      try await fault("cannot read \(key)")
    }
  }
}
