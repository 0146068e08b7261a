import Foundation
import SimulatedDevice
import ByteCoding
import TestSupport
import Testing

/// Runs `sallyport check` in a folder with an authority's files, without the variables of the tests' own environment.
private struct Shell {
  let folder: String

  static func with<R>(_ body: (Shell) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      try AuthorityFolder(path: folder).save(TestAuthority(appID: "SALLYPORT1.com.example.app", at: .now()))
      return try await body(Shell(folder: folder))
    }
  }

  func write(_ text: String, to name: String) throws {
    try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
  }

  /// Returns the exit status and the output of `sallyport check`; DIR replaces the path of the folder.
  func check(
    _ arguments: String..., environment: [String: String?] = [:]
  ) async throws -> (status: Int32?, output: [String], errors: [String]) {
    try await sallyport(["check"] + arguments, environment: environment)
  }

  func sallyport(
    _ arguments: [String], environment: [String: String?] = [:]
  ) async throws -> (status: Int32?, output: [String], errors: [String]) {
    let (exit, output, errors) = try await ChildProcess.run(
      Places.product("sallyport"), arguments, environment: environment, in: folder)
    let short = { (lines: [String]) in lines.map { $0.replacingOccurrences(of: folder, with: "DIR") } }
    return (exit.code, short(output), short(errors))
  }
}

private let sound = """
  listen: { address: 127.0.0.1, port: 0 }
  tls: { cert_file: server.pem, key_file: server.key }
  app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app }] }
  store: { url: "sqlite:///var/empty/none/state.db" }
  routes: [{ upstream: "ws://127.0.0.1:1" }]
  """

@Suite("sallyport check", .timeLimit(.minutes(2)))
struct CheckCommandTests {
  @Test("The command reports all errors with their places and hints, then warnings, and exits 78")
  func faults() async throws {
    try await Shell.with { shell in
      try shell.write("listen: { prot: 1 }\napp_attest: { enforcement: off }\nsession: { ping: 5 }\n", to: "gate.yaml")
      let (status, output, errors) = try await shell.check("-c", "gate.yaml")
      #expect(status == 78 && output.isEmpty)
      #expect(
        errors.map { $0.hasPrefix("hint: ") ? "hint" : $0 } == [
          "error: gate.yaml:1:1: tls.cert_file: missing",
          "error: gate.yaml:1:1: tls.key_file: missing",
          "hint",
          "error: gate.yaml:1:11: listen.prot: unknown key (did you mean listen.port)",
          "error: gate.yaml:3:18: session.ping: 5 has no unit: write ms, s, m, h or d (did you mean 5s)",
          "warning: routes: not set: / is forwarded to ws://127.0.0.1:8080",
          "warning: gate.yaml:2:28: app_attest.enforcement: enforcement is OFF: all clients are admitted "
            + "without verification",
        ])
    }
  }

  @Test("The command exits 1 if the file is valid but a referenced target is missing, and 0 with --offline")
  func probes() async throws {
    try await Shell.with { shell in
      try shell.write(sound, to: "gate.yaml")
      let (status, output, errors) = try await shell.check("-c", "gate.yaml")
      #expect(status == 1)
      #expect(output.contains("ok: tls.key_file: matches the certificate (mode 0600)"))
      #expect(output.last == "configuration valid; 2 of 6 probes failed")
      #expect(
        errors.contains {
          $0.hasPrefix("error: gate.yaml:5:22: routes[0].upstream: ws://127.0.0.1:1 cannot be reached")
        })
      #expect(errors.contains { $0.hasPrefix("error: gate.yaml:4:15: store.url: ") })

      let (offline, offlineOutput, offlineErrors) = try await shell.check("-c", "gate.yaml", "--offline")
      #expect(offline == 0 && offlineErrors.isEmpty)
      #expect(offlineOutput == ["configuration valid"])
    }
  }

  @Test("The command ends when its peers drip: an upstream in the head of its answer, an ACME server in its handshake")
  func drippingPeers() async throws {
    try await Shell.with { shell in
      let upstream = try DrippingServer(opening: Array("HTTP/1.1 101 Switching Protocols\r\nX-Slow: ".utf8))
      // The header of a handshake record of 16,000 bytes.
      let authority = try DrippingServer(opening: [0x16, 0x03, 0x03, 0x3E, 0x80])
      defer { for server in [upstream, authority] { server.stop() } }
      let acme = "acme: { domains: [gate.example.com], directory: 'https://127.0.0.1:\(authority.port)/dir' }"
      try shell.write(
        sound.replacing("cert_file: server.pem, key_file: server.key", with: acme)
          .replacing("127.0.0.1:1\"", with: "127.0.0.1:\(upstream.port)\""), to: "gate.yaml")
      let run = try await shell.check("-c", "gate.yaml")
      #expect(run.status == 1, "\(run)")
      let handshake = "routes[0].upstream: ws://127.0.0.1:\(upstream.port) does not answer a WebSocket handshake: "
      #expect(run.errors.contains { $0.contains(handshake + "timed out") }, "\(run.errors)")
      let directory = run.errors.first { $0.hasPrefix("error: ") && $0.contains("tls.acme.directory: ") }
      #expect(directory?.contains("timed out") == true, "\(run.errors)")
      // One connection to see that it listens, and one for the handshake.
      #expect(upstream.connections == 2 && authority.connections == 1)
    }
  }

  @Test(
    "The command refuses the same configurations as run, with the same text",
    arguments: [
      ("admin: { listen: '127.0.0.1:1', token_file: short }", "admin.token_file: "),
      ("admin: { listen: '127.0.0.1:1', token_file: none }", "admin.token_file: "),
      ("admin: { listen: '127.0.0.1:1', token_file: public }", "admin.token_file: "),
      ("metrics: { listen: '127.0.0.1:9' }\nadmin: { listen: '127.0.0.1:9', token_file: token }", "metrics.listen: "),
      ("debug_mtls: { client_ca_file: attestation-intermediate.pem }", "debug_mtls.client_ca_file: "),
      ("debug_mtls: { client_ca_file: server.pem, partial_chain: true }", "debug_mtls.client_ca_file: "),
      ("debug_mtls: { client_ca_file: server.pem }", "debug_mtls.client_ca_file: "),
    ])
  func asRun(_ section: String, _ key: String) async throws {
    try await Shell.with { shell in
      for (name, text, mode) in [
        ("short", "short", 0o600), ("public", String(repeating: "x", count: 32), 0o644),
        ("token", String(repeating: "x", count: 32), 0o600),
      ] {
        try shell.write(text, to: name)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: shell.folder + "/" + name)
      }
      // A missing folder of the store would be the first fault of `run`.
      let present = sound.replacing("/var/empty/none", with: shell.folder)
      try shell.write(present + "\n" + section, to: "gate.yaml")
      let checked = try await shell.check("-c", "gate.yaml")
      let errorLine = try #require(checked.errors.first { $0.hasPrefix("error: ") && $0.contains(key) })
      #expect(checked.status == 78 || checked.status == 1)
      let run = try await shell.sallyport(["run", "-c", "gate.yaml"])
      #expect(run.status == 78)
      let text = try #require(errorLine.firstRange(of: key)).lowerBound
      #expect(run.errors.contains { $0.hasPrefix("error: ") && $0.hasSuffix(errorLine[text...]) }, "\(run.errors)")
    }
  }

  @Test("A store URL that libpq cannot parse is an error, with and without probes")
  func malformedStore() async throws {
    try await Shell.with { shell in
      try shell.write(sound, to: "gate.yaml")
      for further in [[], ["--offline"]] {
        let (status, output, errors) = try await shell.sallyport(
          ["check", "-c", "gate.yaml", "--set", "store.url=postgres://h/x?nonsense=1"] + further)
        #expect(status == 78 && output.isEmpty)
        #expect(errors.first?.hasPrefix("error: --set: store.url: postgres://h/x?nonsense=1: invalid URI") == true)
        #expect(errors.count == 2 && errors.last?.hasPrefix("hint: ") == true, "\(errors)")
      }
    }
  }

  @Test(
    "An ambiguous store URL is refused, and no part of its password is printed",
    arguments: [
      "postgres://u:hunter@2word@127.0.0.1:1/x", "postgres://u:hunter/2word@127.0.0.1:1/x",
      "postgres://u:hunter?2word@127.0.0.1:1/x", "host=127.0.0.1 password=hunter2word",
    ])
  func ambiguousStore(_ url: String) async throws {
    try await Shell.with { shell in
      try shell.write(sound.replacingOccurrences(of: "sqlite:///var/empty/none/state.db", with: url), to: "gate.yaml")
      let commands = [
        ["check", "-c", "gate.yaml"], ["check", "-c", "gate.yaml", "--json", "--effective"],
        ["check", "-c", "gate.yaml", "--effective"], ["run", "-c", "gate.yaml"], ["store", "check", "-c", "gate.yaml"],
        ["store", "check", "--store", url], ["keys", "list", "--store", url],
      ]
      for command in commands {
        let (status, output, errors) = try await shell.sallyport(command)
        let all = (output + errors).joined(separator: "\n")
        #expect(status == 78 || status == 64, "\(command): \(all)")
        for part in ["hunter", "2word"] { #expect(!all.contains(part), "\(command): \(all)") }
        #expect(all.contains("not percent-encoded") || all.contains("keyword string"), "\(command): \(all)")
      }
    }
  }

  @Test("A value that the command cannot separate from its key is not printed")
  func settingWithoutKey() async throws {
    try await Shell.with { shell in
      try shell.write(sound, to: "gate.yaml")
      let (status, output, errors) = try await shell.sallyport([
        "check", "-c", "gate.yaml", "--set", "store.url:postgres://u:hunter2word@h/x",
      ])
      #expect(status == 78 && errors.first == "error: --set store.url…: no value")
      #expect(!(output + errors).joined().contains("hunter"))
    }
  }

  @Test("A store that every user can access is refused, as by run; one that a group can access causes a warning")
  func readableStore() async throws {
    try await Shell.with { shell in
      try shell.write(
        sound.replacingOccurrences(of: "/var/empty/none/state.db", with: shell.folder + "/state.db"), to: "gate.yaml")
      let store = "sqlite://\(shell.folder)/state.db"
      #expect(try await shell.sallyport(["store", "migrate", "--store", store]).status == 0)
      let state = shell.folder + "/state.db"
      #expect(chmod(state, 0o644) == 0)
      for command in ["check", "run"] {
        let (status, _, errors) = try await shell.sallyport([command, "-c", "gate.yaml"])
        #expect(status == 78)
        #expect(
          errors.contains {
            $0.hasPrefix("error: ")
              && $0.hasSuffix(
                "store.url: every user of this machine can access DIR/state.db, which holds the identity "
                  + "signing keys and the challenge keys"
              )
          }, "\(command): \(errors)")
        #expect(errors.contains { $0.hasPrefix("hint: run chmod 600 DIR/state.db, and replace the keys") }, "\(errors)")
      }
      #expect(try await shell.check("-c", "gate.yaml", "--offline").status == 78)
      #expect(chmod(state, 0o640) == 0)
      let (_, _, warned) = try await shell.check("-c", "gate.yaml")
      #expect(
        warned.contains { $0.hasPrefix("warning: ") && $0.contains("store.url: users other than its owner can") },
        "\(warned)")
      #expect(chmod(state, 0o600) == 0)
      let (_, _, quiet) = try await shell.check("-c", "gate.yaml")
      #expect(!quiet.contains { $0.contains("store.url") }, "\(quiet)")
    }
  }

  @Test("The printed effective settings load to the same settings")
  func effective() async throws {
    try await Shell.with { shell in
      try shell.write(sound, to: "gate.yaml")
      let (status, output, _) = try await shell.check(
        "-c", "gate.yaml", "--offline", "--effective", "--set", "listen.port=6201",
        environment: ["SALLYPORT_STORE__URL": "postgres://u:hunter2@h/x"])
      #expect(status == 0)
      let lines = output.map { $0.replacingOccurrences(of: "(?<=\\S)  +", with: "  ", options: .regularExpression) }
      for line in [
        "  port: 6201  # --set", "  url: \"postgres://u:…@h/x\"  # SALLYPORT_STORE__URL", "  loops: auto  # default",
      ] {
        #expect(lines.contains(line), "\(lines)")
      }
      #expect(!output.joined().contains("hunter2"))
      let text = output.joined(separator: "\n").replacingOccurrences(of: "DIR", with: shell.folder)
      try shell.write(text, to: "again.yaml")
      let again = try await shell.check("-c", "again.yaml", "--offline", "--effective")
      #expect(again.status == 0)
      let values = { (lines: [String]) in
        lines.map { $0.replacingOccurrences(of: " +# .*", with: "", options: .regularExpression) }
      }
      #expect(values(again.output) == values(output))
    }
  }

  @Test("The command prints everything as JSON for programs")
  func json() async throws {
    struct Report: Decodable {
      struct Item: Decodable, Hashable {
        var key: String?
        var file: String?
        var line: Int?
        var column: Int?
        var suggestion: String?
        var outcome: String?
        var origin: String
      }
      let status: Int
      let faults: [Item]
      let warnings: [Item]
      let probes: [Item]
      let effective: [Item]?
    }
    try await Shell.with { shell in
      try shell.write(sound, to: "gate.yaml")
      var transcript = try await shell.check("-c", "gate.yaml", "--json", "--effective")
      var report = try JSONDecoder().decode(Report.self, from: Data(transcript.output.joined(separator: "\n").utf8))
      #expect(transcript.status == 1 && report.status == 1 && transcript.errors.isEmpty)
      #expect(report.faults.isEmpty && report.probes.count { $0.outcome == "failed" } == 2)
      #expect(report.effective?.first { $0.key == "listen.port" }?.origin == "gate.yaml:1:37")

      try shell.write(
        "listen: { prot: 1 }\n" + sound.split(separator: "\n").dropFirst().joined(separator: "\n"), to: "gate.yaml")
      transcript = try await shell.check("-c", "gate.yaml", "--json")
      report = try JSONDecoder().decode(Report.self, from: Data(transcript.output.joined(separator: "\n").utf8))
      #expect(transcript.status == 78 && report.status == 78 && report.probes.isEmpty && report.effective == nil)
      #expect(
        report.faults == [
          .init(
            key: "listen.prot", file: "gate.yaml", line: 1, column: 11, suggestion: "listen.port",
            origin: "gate.yaml:1:11")
        ])
    }
  }

  @Test("The command prints the generated documents", arguments: ["--schema", "--reference", "--example"])
  func documents(_ flag: String) async throws {
    try await Shell.with { shell in
      let (status, output, errors) = try await shell.check(flag)
      #expect(status == 0 && errors.isEmpty)
      let beginnings = [
        "--schema": "{", "--reference": "# Configuration reference",
        "--example": "# yaml-language-server: $schema=sallyport.schema.json",
      ]
      #expect(output.first == beginnings[flag])
    }
  }
}
