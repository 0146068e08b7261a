import Foundation
import GateProcesses
import TestSupport
import Testing

@Suite("sallyport dev -c", .timeLimit(.minutes(5)))
struct DevRehearsalTests {
  /// The summary of a start, by `--json`.
  private struct Summary: Decodable {
    struct Difference: Decodable {
      let key: String
      let file: String?
      let rehearsal: String?
    }

    let url: String
    let app: String
    let upstream: String
    let next: String?
    let configuration: String
    let differences: [Difference]

    subscript(key: String) -> Difference? { differences.first { $0.key == key } }
  }

  /// The configuration of a gate in production; `DIR` is the operator's folder, in which nothing may change.
  private static func configuration(upstream: String) -> String {
    """
    version: 1
    listen: { port: 443, proxy_protocol: v2, trusted_proxies: [192.0.2.10] }
    tls: { acme: { domains: [gate.example.com], email: ops@example.com } }
    app_attest:
      challenge_keys_file: DIR/challenge.keys
      apps:
        - { team_id: AAABBBCCC1, bundle_id: com.example.first, environments: [production] }
        - { team_id: AAABBBCCC1, bundle_id: com.example.second }
    routes: [{ path: /chat, upstream: "\(upstream)" }]
    session: { max_message: 1KiB }
    store: { url: "postgres://gate@db.example.com/gate", password_file: DIR/store.password }
    admin: { listen: "unix:DIR/admin.sock" }
    metrics: { listen: 127.0.0.1:9464 }
    telemetry: { otlp: "http://127.0.0.1:4318" }
    """
  }

  private static func write(_ text: String, in folder: String) throws -> String {
    try FileManager.default.createDirectory(atPath: folder + "/operator", withIntermediateDirectories: true)
    let path = folder + "/operator/gate.yaml"
    try Data(text.replacing("DIR", with: folder + "/operator").utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  @Test("A file of a gate in production is served to simulated devices, and nothing that it names is touched")
  func rehearses() async throws {
    try await Places.withTemporaryFolder { folder in
      try await EchoProcess.serving { upstream in
        let file = try Self.write(Self.configuration(upstream: upstream), in: folder)
        let dev = folder + "/dev"
        let gate = try ChildProcess(
          Places.product("sallyport"), ["dev", "-c", file, "--folder", dev, "--port", "0", "--json"],
          environment: ["SALLYPORT_LISTEN__ADDRESS": "nowhere"])
        defer { gate.kill() }
        let line = try await gate.output.first("the summary") { $0.hasPrefix("{") }
        let summary = try JSONDecoder().decode(Summary.self, from: Data(line.utf8))
        #expect(summary.app == "AAABBBCCC1.com.example.first" && summary.configuration == file)
        #expect(summary.upstream == "/chat to \(upstream)")
        #expect(summary["listen.port"]?.file == "443" && summary["listen.port"]?.rehearsal == "0")
        #expect(summary["listen.address"]?.rehearsal == "127.0.0.1")
        #expect(summary["tls.acme.domains[0]"]?.file == "gate.example.com")
        #expect(summary["tls.cert_file"]?.rehearsal == dev + "/server.pem")
        #expect(summary["store.url"]?.rehearsal == "sqlite://\(dev)/state.db")
        #expect(summary["admin.listen"]?.rehearsal == "unix:\(dev)/admin.sock")
        for app in 0...1 {
          let environment = try #require(summary["app_attest.apps[\(app)].environments[0]"])
          #expect(environment.file == "production" && environment.rehearsal == "development")
        }
        for key in ["listen.proxy_protocol", "metrics.listen", "telemetry.otlp", "store.password_file"] {
          #expect(summary[key] != nil, "\(key)")
        }
        #expect(summary["app_attest.challenge_keys_file"]?.rehearsal == nil)
        #expect(summary["session.max_message"] == nil && summary["routes[0].upstream"] == nil)

        // The printed command opens a socket on the file's route; the file's limit of messages is in force.
        let words = try #require(summary.next).split(separator: " ").map(String.init)
        #expect(words.starts(with: ["attest", "connect", summary.url + "chat"]))
        let environment = ["XDG_DATA_HOME": folder + "/data"]
        let echo = try await ChildProcess.run(
          Places.product("attest"), words.dropFirst() + ["--once", "hello"], environment: environment)
        #expect(echo.exit == .code(0) && echo.output == ["hello"], "\(echo)")
        let long = try await ChildProcess.run(
          Places.product("attest"), words.dropFirst() + ["--once", String(repeating: "x", count: 2000)],
          environment: environment)
        #expect(long.errors.first?.contains("1009") == true, "\(long)")

        // The commands for operators find the gate by the folder's configuration.
        let keys = try await sallyport(["keys", "list", "-c", dev + "/sallyport.yaml"])
        #expect(keys.status == 0 && keys.output.contains { $0.contains("com.example.first") }, "\(keys)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/operator") == ["gate.yaml"])
        gate.send(SIGTERM)
        #expect(try await gate.exit() == .code(0))
      }
    }
  }

  @Test("The differences are printed for people, one on a line")
  func text() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = try Self.write(
        "tls: { cert_file: DIR/none.pem, key_file: DIR/none.key }\nroutes: [{ upstream: \"ws://127.0.0.1:1\" }]\n",
        in: folder)
      let gate = try ChildProcess(
        Places.product("sallyport"), ["dev", "--config", file, "--folder", folder + "/dev", "--port", "0"])
      defer { gate.kill() }
      _ = try await gate.output.first("the file") { $0 == "file         \(file), except for:" }
      _ = try await gate.output.first("the certificate") {
        $0 == "             tls.cert_file: \(folder)/dev/server.pem instead of \(folder)/operator/none.pem"
      }
    }
  }

  @Test("A fault of the file is reported at its place, and nothing is written")
  func fault() async throws {
    try await Places.withTemporaryFolder { folder in
      for (text, error) in [
        ("listen:\n  port: x\n", "gate.yaml:2:9: listen.port: "), ("route: []\n", "gate.yaml:1:1: route: unknown key"),
      ] {
        let file = try Self.write(text, in: folder)
        let refused = try await sallyport(["dev", "-c", file, "--folder", folder + "/dev"])
        #expect(refused.status == 78 && refused.output.isEmpty, "\(refused)")
        #expect(refused.errors.first?.contains(error) == true, "\(refused)")
        #expect(!FileManager.default.fileExists(atPath: folder + "/dev"))
      }
      let file = try Self.write("routes: [{ path: /a }]\n", in: folder)
      let refused = try await sallyport(["dev", "-c", file, "--folder", folder + "/dev"])
      #expect(refused.status == 78, "\(refused)")
      #expect(refused.errors.first == "error: \(file):1:10: routes[0].upstream: missing", "\(refused)")
    }
  }

  @Test(
    "An option that sets what the file sets is refused",
    arguments: [
      ["--upstream", "ws://127.0.0.1:1"], ["--forward", "all"], ["--app-id", "AAABBBCCC1.a.b"], ["--real"],
    ])
  func options(_ options: [String]) async throws {
    try await Places.withTemporaryFolder { folder in
      let file = try Self.write("routes: []\n", in: folder)
      let refused = try await sallyport(["dev", "-c", file, "--folder", folder + "/dev"] + options)
      #expect(refused.status == 64 && refused.isFailure, "\(refused)")
      #expect(refused.errors.first?.hasPrefix("error: \(options[0]): not with -c") == true, "\(refused)")
    }
  }

  @Test("A folder whose devices run no app of the file is refused")
  func otherApp() async throws {
    try await Places.withTemporaryFolder { folder in
      let dev = folder + "/dev"
      let gate = try ChildProcess(
        Places.product("sallyport"), ["dev", "--folder", dev, "--port", "0", "--upstream", "ws://127.0.0.1:1"])
      defer { gate.kill() }
      _ = try await gate.output.first("the URL") { $0.hasPrefix("url ") }
      let file = try Self.write("app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: a.b }] }\n", in: folder)
      let refused = try await sallyport(["dev", "-c", file, "--folder", dev, "--port", "0"])
      #expect(refused.status == 64 && refused.isFailure, "\(refused)")
      #expect(
        refused.errors.first
          == "error: -c: the devices in \(dev) run SALLYPORT1.com.example.app, which is no app of the file",
        "\(refused)")
    }
  }
}
