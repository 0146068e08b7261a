import ByteCoding
import ConfigurationEngine
import Wire
import Foundation
import Logging
import Observability
import Settings
import SimulatedDevice
import TestSupport
import Testing

@testable import GateRuntime

@Suite("Telemetry behind a proxy", .timeLimit(.minutes(2)))
struct TelemetryProxyTests {
  /// Exports the metrics once, to a collector that only the proxy of `variable` reaches.
  private func export(_ collector: String, _ variable: String, _ proxy: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let authority = AuthorityFolder(path: folder + "/authority")
      _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
      try """
      tls: { cert_file: authority/server.pem, key_file: authority/server.key }
      store: { url: "sqlite://\(folder)/state.db" }
      routes: [{ upstream: 'ws://127.0.0.1:1' }]
      telemetry: { otlp: "\(collector)" }
      """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
      let settings = SettingsLoader(file: "gate.yaml", flags: [], environment: [:], workingDirectory: folder)
        .examine().settings?.telemetry
      let exporter = try TelemetryExporter(
        try #require(settings), proxies: ProxyVariables { $0 == variable ? proxy : nil }, registry: MetricsRegistry(),
        logger: Logger(label: "telemetry") { _ in SwiftLogNoOpLogHandler() })
      // A cancelled export sends what is left, once.
      let task = Task { await exporter.run() }
      task.cancel()
      await task.value
    }
  }

  @Test("Without TLS the proxy gets the whole URL and its credentials; with TLS it gets a request for a tunnel")
  func exports() async throws {
    let relay = try ForwardProxyServer(.serve(port: 1, document: "{}"))
    defer { relay.stop() }
    try await export("http://collector.example.test:4318/x", "http_proxy", "http://u:p@127.0.0.1:\(relay.port)")
    let lines = try #require(relay.heads.first).components(separatedBy: "\r\n")
    #expect(lines[0] == "POST http://collector.example.test:4318/x/v1/metrics HTTP/1.1")
    #expect(lines.contains("Host: collector.example.test:4318") && lines.contains("Proxy-Authorization: Basic dTpw"))
    try await export("https://collector.example.test", "ALL_PROXY", relay.url)
    #expect(try await relay.head("a tunnel") { $0.hasPrefix("CONNECT collector.example.test:443 ") }.count > 0)
  }
}
