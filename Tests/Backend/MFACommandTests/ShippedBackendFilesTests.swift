import Foundation
import MFAFixtures
import TestSupport
import Testing

/// Prometheus' tool that checks rules; `nil` if it is not installed.
private let ruleChecker = try? Places.tool("promtool")

@Suite("Files shipped with the backend", .serialized, .timeLimit(.minutes(5)))
struct ShippedBackendFilesTests {
  private static func metrics(in text: String) -> Set<String> {
    Set(
      text.matches(of: /\b(mfa|process)_[a-z_]+/).map {
        String($0.output.0).replacing(/_(bucket|sum|count)$/, with: "")
      })
  }

  /// The expressions of the dashboard.
  private static func dashboard() throws -> String {
    let document = try JSONValue(Data(try ProjectFile.text("config/mfa-grafana-dashboard.json").utf8))
    var expressions: [String] = []
    for panel in 0..<(document["panels"]?.count ?? 0) {
      let targets = document["panels"]?[panel]?["targets"]
      for target in 0..<(targets?.count ?? 0) { expressions.append(targets?[target]?["expr"]?.text ?? "") }
    }
    return expressions.joined(separator: "\n")
  }

  @Test("alerts and dashboard use only metrics of a running backend, and the dashboard shows all of its own")
  func names() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        #expect(try await place.ask(backend, as: .genuine()).status == 200)
        let port = backend.port ?? 0
        #expect(try await curl("GET", "http://127.0.0.1:\(port)/api/v1/device/d/status", nil, []).status == 401)
        let text = try await place.admin("GET", "/metrics").text
        let known = Set(
          text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.compactMap {
            $0.split(separator: " ").dropFirst(2).first.map(String.init)
          })
        let shown = Self.metrics(in: try Self.dashboard())
        let rules = Self.metrics(in: try ProjectFile.text("config/mfa-alerts.yml"))
        #expect(shown.count >= 12 && shown.subtracting(known) == [])
        #expect(rules.count >= 8 && rules.subtracting(known) == [])
        let unshown: Set = ["mfa_start_time_seconds", "mfa_config_last_reload_success_timestamp_seconds"]
        #expect(known.filter { $0.hasPrefix("mfa_") }.subtracting(shown).subtracting(unshown) == [])
        // Counters are there before the first event.
        #expect(text.contains(#"mfa_messages_total{kind="sms",outcome="failed"} 0"#), "\(text)")
        #expect(text.contains(#"mfa_store_failures_total{kind="write"} 0"#))
        #expect(text.contains(#"mfa_operations_total{operation="unserved",outcome="unavailable"} 0"#))
        #expect(text.contains(#"mfa_operations_total{operation="auth.request-otp",outcome="internal_error"} 0"#))
        // A request that reached no operation counts as well.
        #expect(text.contains(#"mfa_operations_total{operation="unserved",outcome="not_attested"} 1"#))
        #expect(text.contains("mfa_gate_keys_up 1"))
      }
    }
  }

  @Test(
    "Prometheus' own tool accepts the alerts",
    .enabled(if: ruleChecker != nil, "Debian: apt-get install prometheus"))
  func rules() async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      #require(ruleChecker), ["check", "rules", ProjectFile.path("config/mfa-alerts.yml")])
    #expect(exit == .code(0), "\(output) \(errors)")
  }

  @Test("help fits 80 columns, and its examples can be pasted")
  func width() async throws {
    #expect(try await ProgramHelp.faults(of: "mfa-backend") == [])
  }

  @Test("every command has a version and a help text with an example")
  func help() async throws {
    let commands = try await ProgramHelp.commands(of: "mfa-backend")
    #expect(commands.count > 25)
    for words in commands {
      let name = (["mfa-backend"] + words).joined(separator: " ")
      let version = try await ChildProcess.run(Places.product("mfa-backend"), words + ["--version"])
      #expect(version.exit == .code(0) && version.output.count == 1, "\(name)")
      let help = try await ChildProcess.run(Places.product("mfa-backend"), words + ["--help"])
      #expect(help.output.contains { $0.contains("Example") }, "\(name) shows no example")
    }
  }
}
