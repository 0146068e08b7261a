import ByteCoding
import Commands
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import TransportEngine

@testable import attest

@Suite("attest probe", .serialized)
struct ProbeTests {
  private struct Report: Decodable {
    struct Row: Decodable { let group, attack, expected, seen, verdict: String }
    let findings: [Row]
    let skipped: Int

    func names(_ verdict: String) -> [String] { findings.filter { $0.verdict == verdict }.map(\.attack) }
  }

  private func report(_ outcome: Outcome) throws -> Report {
    try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
  }

  @Test("A gate with enforcement on refuses every attack as expected")
  func enforcing() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("probe", setup.url, "--json")
    let report = try report(outcome)
    #expect(report.findings.filter { $0.verdict != "held" }.map { "\($0.attack): \($0.seen)" } == [])
    #expect(report.findings.count == Attack.all(on: .ios).count && report.skipped == 0)
    #expect(outcome.status == 0, "\(outcome.errors)")
  }

  @Test("The text output is a table; without an authority, only attacks that need no device are tried")
  func table() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.place.run(["probe", setup.url, "--ca", setup.authority + "/tls-ca.pem"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.first?.hasPrefix("group ") == true)
    #expect(lines.last?.contains("none got through") == true && lines.last?.contains("not tried") == true)
  }

  @Test("With enforcement off, exactly the attacks that the gate admits are reported")
  func open() async throws {
    let setup = try await GateSetup()
    let (gate, url) = try await setup.openGate()
    defer { gate.kill() }
    let outcome = try await setup.attest("probe", url, "--json")
    #expect(outcome.status == 1)
    #expect(outcome.errorLines.first?.contains("got through") == true)
    let report = try report(outcome)
    let open = report.names("through")
    for attack in Attack.all(on: .ios) where attack.group == .credentials { #expect(open.contains(attack.name)) }
    for attack in Attack.all(on: .ios) where [.head, .path, .registration].contains(attack.group) {
      #expect(!open.contains(attack.name), "\(attack.name)")
    }
    #expect(open.contains("a request behind a refused handshake"))
  }

  @Test("A busy gate with limits is not a finding but a temporary failure", arguments: [1, 3])
  func busy(_ challenges: Int) async throws {
    let setup = try await GateSetup()
    let (gate, url) = try await setup.furtherGate(
      enforcement: "enforce", "limits: { per_ip: { challenges: \(challenges)/1h } }")
    defer { gate.kill() }
    // With one challenge, the valid device is refused; with three, the attacks are.
    let outcome = try await setup.attest("probe", url)
    #expect(outcome.status == 75, "\(outcome.errors)")
    #expect(outcome.errorLines.count == 2 && outcome.errorLines[0].contains("too busy"), "\(outcome.errors)")
    #expect(outcome.errorLines.last?.hasPrefix("hint: wait a minute and try again") == true)
    #expect(!outcome.output.contains("THROUGH"))
  }

  @Test(
    "With an audience, a gate refuses every attack on its tokens with the expected code", arguments: Platform.allCases)
  func tokens(_ platform: Platform) async throws {
    let setup = try await GateSetup()
    let (gate, url) = try await setup.furtherGate(
      enforcement: "enforce", "tokens: { audiences: ['https://api.example.com/v1'] }", servesAndroid: true)
    defer { gate.kill() }
    let probe = ["probe", url, "--platform", platform.rawValue, "--audience"]
    let outcome = try await setup.place.run(
      probe + ["https://api.example.com/v1", "--authority", setup.authority, "--json"])
    let report = try report(outcome)
    #expect(report.findings.filter { $0.verdict != "held" }.map { "\($0.attack): \($0.seen)" } == [])
    let tried = report.findings.filter { $0.group == "tokens" }
    #expect(tried.map(\.attack) == Attack.tokens.map(\.name) && report.skipped == 0)
    #expect(outcome.status == 0, "\(outcome.errors)")

    let other = try await setup.place.run(probe + ["https://other.example.com", "--authority", setup.authority])
    #expect(other.status == 77 && other.errorLines.first?.contains("audience_refused") == true, "\(other.errors)")
    let strange = try await setup.place.run(probe + ["x", "--ca", setup.authority + "/tls-ca.pem"])
    #expect(strange.status == 64 && strange.errorLines.last?.hasPrefix("hint: ") == true, "\(strange.errors)")
  }

  @Test("Each attack has a unique name", arguments: Platform.allCases)
  func names(_ platform: Platform) {
    let attacks = Attack.all(on: platform) + Attack.tokens
    #expect(Set(attacks.map(\.name)).count == attacks.count)
  }

  @Test("An attack after which the gate does not answer is named, and the results before it are kept")
  func ended() async throws {
    let prober = try Prober(
      GateURL("wss://localhost:1/"), authority: nil, model: nil,
      transport: EngineTransport(
        engine: DeviceSession.makeEngine(), tls: ClientTLS(authorityFile: nil, certificateFile: nil, keyFile: nil)))
    let refused = Reply(RawAnswer(bytes: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)))
    let (findings, end) = await prober.findings(of: [
      Attack(.head, "first", [400]) { _ throws(Failure) in refused },
      Attack(.head, "second", [400]) { _ throws(Failure) in throw Failure(.unavailable, "gone", hint: "start it") },
      Attack(.head, "third", [400]) { _ throws(Failure) in refused },
    ])
    #expect(findings.map(\.attack) == ["first"])
    #expect(end == Failure(.unavailable, "the probe ended at \"second\": gone", hint: "start it"))
  }

  @Test("An unreachable address exits with code 69")
  func noGate() async throws {
    let outcome = try await Workplace().run(["probe", "wss://127.0.0.1:1/"])
    #expect(outcome.status == 69)
  }

  @Test(
    "A raw response is parsed leniently",
    arguments: [
      ("HTTP/1.1 401 Unauthorized\r\nX-Attest-Error: no_credentials\r\n\r\nx", 401, "no_credentials", 1),
      ("HTTP/1.1 400 B\r\nx-attest-error:a\r\n\r\nHTTP/1.1 200 O\r\n\r\n", 400, "a", 2),
      ("HTTP/1.1 400 B\r\n\r\n\r\nHTTP/1.1 200 O\r\n\r\n", 400, nil, 2),
      ("HTTP/1.1 204 N\r\nX-Attest-Error: \r\n\r\n", 204, nil, 1), ("", nil, nil, 0), ("SSH-2.0\r\n", nil, nil, 0),
      ("HTTP/1.0 200 OK\r\n\r\n", 200, nil, 1), ("HTTP/1.0 200\r\n\r\nHTTP/1.1 400\r\n\r\n", 200, nil, 2),
      ("HTTP/1.1 400 B\r\nX-Attest-Error: \u{1B}[2J\u{202E}\r\n\r\n", 400, "\u{FFFD}[2J\u{FFFD}", 1),
      ("HTTP/1.1 2000 O\r\n\r\n", nil, nil, 0),
    ] as [(String, Int?, String?, Int)])
  func replies(text: String, status: Int?, code: String?, answers: Int) {
    let reply = Reply(RawAnswer(bytes: Array(text.utf8)))
    #expect(reply.status == status && reply.code == code)
    #expect(reply.answers == answers)
  }

  @Test(
    "An answer without an identity assertion is a refusal, unless the gate is busy",
    arguments: [
      ("HTTP/1.1 204 N\r\nX-Attest-Key-Id: a\r\n\r\n", .refused),
      ("HTTP/1.1 401 U\r\nX-Attest-Assertion: \r\nX-Attest-Error: revoked\r\n\r\n", .refused),
      ("HTTP/1.1 503 S\r\nX-Attest-Error: overloaded\r\n\r\n", .retryLater),
      ("HTTP/1.1 429 T\r\n\r\n", .retryLater),
    ] as [(String, Status)])
  func withoutAssertion(text: String, status: Status) throws {
    let failure = #expect(throws: Failure.self) {
      try Prober.identityAssertion(in: RawAnswer(bytes: Array(text.utf8)))
    }
    #expect(failure?.status == status)
    let answer = RawAnswer(bytes: Array("HTTP/1.1 204 N\r\nx-attest-assertion: a.b.c\r\n\r\n".utf8))
    #expect(try Prober.identityAssertion(in: answer) == "a.b.c")
  }

  @Test(
    "Only a refusal or a close without a response counts as a defense",
    arguments: [
      ("HTTP/1.1 401 U\r\n\r\n", false, .held, "401"), ("HTTP/1.0 401 U\r\n\r\n", false, .held, "401"),
      ("", false, .held, "closed"), ("", true, .unclear, "no answer"), ("SSH-2.0\r\n", false, .unclear, "not HTTP"),
      ("SSH-2.0\r\n", true, .unclear, "not HTTP"), ("HTTP/1.1 400 B\r\n\r\n", false, .differs, "400"),
      ("HTTP/1.0 200 OK\r\n\r\n", false, .through, "200"), ("HTTP/1.0 101 S\r\n\r\n", false, .through, "101"),
      ("HTTP/1.1 502 B\r\n\r\n", false, .through, "502"), ("HTTP/1.1 429 T\r\n\r\n", false, .unclear, "429"),
      ("HTTP/1.1 401 U\r\n\r\nHTTP/1.0 200 OK\r\n\r\n", false, .through, "401, 2 answers"),
    ] as [(String, Bool, Finding.Verdict, String)])
  func verdicts(text: String, isUnfinished: Bool, verdict: Finding.Verdict, seen: String) throws {
    let reply = Reply(RawAnswer(bytes: Array(text.utf8), isUnfinished: isUnfinished))
    let finding = Finding(Attack(.credentials, "none", [401]) { _ in reply }, reply)
    #expect(finding.verdict == verdict)
    #expect(finding.seen == seen)
  }
}

extension GateSetup {
  /// Starts a second gate with the same authority and enforcement off, and returns its address.
  fileprivate func openGate() async throws -> (ChildProcess, url: String) { try await furtherGate(enforcement: "off") }

  /// Starts a second gate with the same authority and these sections, and returns its address.
  func furtherGate(
    enforcement: String, _ sections: String = "", listen: String = "{ address: 127.0.0.1, port: 0 }",
    servesAndroid: Bool = false
  ) async throws -> (ChildProcess, url: String) {
    let upstream = try #require(echo.firstLines.first)
    let folder = AuthorityFolder(path: authority)
    let app = try folder.load().androidApp
    let android =
      servesAndroid
      ? (
        app: ", { platform: android, package: \(app.package), signers: [\(Hex.encode(app.signer))] }",
        trust: ", android_root_file: \"\(folder.androidRootPath)\"",
        settings: "android: { status_list: \"\(folder.androidStatusListPath)\" }"
      ) : (app: "", trust: "", settings: "# No Android.")
    let configuration = """
      listen: \(listen)
      tls: { cert_file: server.pem, key_file: server.key }
      app_attest:
        enforcement: \(enforcement)
        apps: [{ team_id: \(try teamID), bundle_id: \(try bundleID), environments: [development] }\(android.app)]
        trust: { attestation_root_file: attestation-root.pem, receipt_root_file: receipt-root.pem\(android.trust) }
        \(android.settings)
      store: { url: "sqlite://\(place.folder)/open.db" }
      routes: [{ upstream: "\(upstream)" }]
      \(sections)
      """
    let file = authority + "/open.yaml"
    try configuration.write(toFile: file, atomically: true, encoding: .utf8)
    let gate = try ChildProcess(Program.sallyport.path, ["run", "-c", file], in: authority)
    let line = try await gate.errors.first("the address") { $0.contains("\"listening\"") }
    let port = try #require(
      line.split(separator: "\"").compactMap { $0.split(separator: ":").last }.compactMap { Int($0) }.first)
    return (gate, "wss://localhost:\(port)/")
  }

  private var appID: String { get throws { try AuthorityFolder(path: authority).load().appID } }
  private var teamID: String { get throws { String(try appID.prefix(10)) } }
  private var bundleID: String { get throws { String(try appID.dropFirst(11)) } }
}
