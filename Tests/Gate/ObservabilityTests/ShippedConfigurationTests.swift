import Foundation
import GateProcesses
import TestSupport
import Testing

@Suite("The shipped dashboard and alerts", .serialized, .timeLimit(.minutes(5)))
struct ShippedConfigurationTests {
  private struct Dashboard: Decodable {
    struct Panel: Decodable {
      struct Target: Decodable { let expr: String }
      let title: String
      let targets: [Target]
    }
    let panels: [Panel]
  }

  /// Returns the expressions of the dashboard, with its variables replaced as Grafana does.
  private static func dashboardExpressions() throws -> [String] {
    let data = Data(try ProjectFile.text("config/grafana-dashboard.json").utf8)
    let panels = try JSONDecoder().decode(Dashboard.self, from: data).panels
    return panels.flatMap(\.targets).map { target in
      target.expr.replacingOccurrences(of: "$__rate_interval", with: "5m")
        .replacingOccurrences(of: "$instance", with: ".*").replacingOccurrences(of: "$job", with: "sallyport")
    }
  }

  /// Returns the names of metrics in `text`, without the suffixes of a histogram's series.
  private static func metrics(in text: String) -> Set<String> {
    Set(
      text.matches(of: /\b(sallyport|process)_[a-z_]+/).map { match in
        String(match.output.0).replacing(/_(bucket|sum|count)$/, with: "")
      })
  }

  @Test("Dashboard and alerts use only metrics of a running gate, and the dashboard shows all of the gate's own")
  func names() async throws {
    try await ObservabilityBench.serving { bench in
      let text = try await bench.metrics.scrape().text
      let known = Set(
        text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.compactMap { line in
          line.split(separator: " ").dropFirst(2).first.map(String.init)
        })
      let shown = Self.metrics(in: try Self.dashboardExpressions().joined(separator: "\n"))
      // Only the rules: comments and texts may name files and commands.
      let rules = try ProjectFile.text("config/alerts.yml")
      #expect(shown.subtracting(known) == [])
      #expect(Self.metrics(in: rules).subtracting(known) == [])
      #expect(Self.metrics(in: rules).count >= 8)
      let unshown: Set = ["sallyport_start_time_seconds", "sallyport_config_last_reload_success_timestamp_seconds"]
      #expect(known.filter { $0.hasPrefix("sallyport_") }.subtracting(shown).subtracting(unshown) == [])
    }
  }

  private static let hasPromtool = FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool")

  @Test(
    "Prometheus' own tool accepts the alerts and the dashboard's expressions",
    .enabled(if: hasPromtool, "Debian: apt-get install prometheus"))
  func promtool() async throws {
    try await Places.withTemporaryFolder { folder in
      let records = try Self.dashboardExpressions().enumerated().map { number, expression in
        "      - { record: \"panel:\(number)\", expr: '\(expression)' }"
      }
      try "groups:\n  - name: dashboard\n    rules:\n\(records.joined(separator: "\n"))\n"
        .write(toFile: folder + "/dashboard.yml", atomically: true, encoding: .utf8)
      for file in [ProjectFile.path("config/alerts.yml"), folder + "/dashboard.yml"] {
        let (exit, output, errors) = try await ChildProcess.run("/usr/bin/promtool", ["check", "rules", file])
        #expect(exit == .code(0), "\(output) \(errors)")
      }
    }
  }

  @Test(
    "Prometheus' own tool accepts the scrape configuration, and refuses it with a wrong key",
    .enabled(if: hasPromtool, "Debian: apt-get install prometheus"))
  func scrapeConfiguration() async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      "/usr/bin/promtool", ["check", "config", ProjectFile.path("config/prometheus.yml")])
    #expect(exit == .code(0), "\(output) \(errors)")
    try await Places.withTemporaryFolder { folder in
      let broken = try ProjectFile.text("config/prometheus.yml").replacing("static_configs", with: "statik_configs")
      try broken.write(toFile: folder + "/prometheus.yml", atomically: true, encoding: .utf8)
      let check = try await ChildProcess.run("/usr/bin/promtool", ["check", "config", folder + "/prometheus.yml"])
      #expect(check.exit == .code(1))
    }
  }

  @Test(
    "The alerts of upstreams, certificates, store and ACME are raised when they should be, and only then",
    .enabled(if: hasPromtool, "Debian: apt-get install prometheus"))
  func alerts() async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      "/usr/bin/promtool", ["test", "rules", ProjectFile.path("Tests/Gate/Programs/alerts.yml")])
    #expect(exit == .code(0), "\(output) \(errors)")
  }
}
