import Cryptography
import Wire
import Foundation
import GateRuntime
import TestSupport
import Testing

@Suite("The proxies of a gate", .timeLimit(.minutes(2)))
struct ProxyProbeTests {
  private static let sections = """
    routes: [{ upstream: 'ws://127.0.0.1:1' }]
    app_attest:
      apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app }]
      android: { status_list: 'https://lists.example.test/status' }
    telemetry: { otlp: 'http://collector.example.test:4318' }
    """

  private func findings(_ variables: [String: String]) async throws -> [String] {
    try await Bench.with { bench in
      let settings = try bench.settings(Self.sections)
      let preflight = Preflight(settings, store: nil, at: Bench.now, proxies: ProxyVariables { variables[$0] })
      return await preflight.run().map(bench.line)
    }
  }

  @Test("The proxy of each server is reported, with the variable that names it, and the server is asked through it")
  func reported() async throws {
    let relay = try ForwardProxyServer(.answer(Array("HTTP/1.1 403 x\r\n\r\n".utf8)))
    defer { relay.stop() }
    let place = "127.0.0.1:\(relay.port)"
    let findings = try await findings(["https_proxy": "http://u:hunter2@\(place)", "ALL_PROXY": "http://other.test:1"])
    #expect(
      findings.contains(
        "passed: app_attest.android.status_list: lists.example.test is reached through the proxy http://\(place) "
          + "(https_proxy)"), "\(findings)")
    #expect(
      findings.contains(
        "passed: telemetry.otlp: collector.example.test is reached through the proxy http://other.test:1 (ALL_PROXY)"))
    #expect(
      findings.contains { $0.hasPrefix("failed: app_attest.android.status_list: ") && $0.contains("status 403") })
    #expect(relay.heads.first?.hasPrefix("CONNECT lists.example.test:443 ") == true)
    #expect(!findings.joined().contains("hunter2"))
  }

  @Test("Apple's data service is reported if an app's receipts are exchanged there, for the environments of the app")
  func dataService() async throws {
    try await Bench.with { bench in
      try bench.write(P256PrivateKey().pkcs8PEM, to: "key.p8")
      func findings(_ environments: String, _ risk: String) async throws -> [String] {
        let app = "{ team_id: AAABBBCCC1, bundle_id: com.example.app, environments: [\(environments)]\(risk) }"
        let settings = try bench.settings(
          "routes: [{ upstream: 'ws://127.0.0.1:1' }]\napp_attest: { apps: [\(app)] }")
        let proxies = ProxyVariables { $0 == "https_proxy" ? "http://127.0.0.1:1" : nil }
        return await Preflight(settings, store: nil, at: Bench.now, proxies: proxies).run().map(bench.line)
          .filter { $0.contains("appattest.apple.com is reached") }
      }
      let risk = ", risk: { key_file: key.p8, key_id: AAABBBCCC1 }"
      let start = "passed: app_attest.apps[].risk: "
      #expect(try await findings("production", "") == [])
      let production = try await findings("production", risk)
      #expect(production.count == 1 && production[0].hasPrefix(start + "data.appattest.apple.com"), "\(production)")
      let both = try await findings("production, development", risk)
      #expect(both.count == 2 && both.contains { $0.hasPrefix(start + "data-development.") }, "\(both)")
    }
  }

  @Test("The provider of a console over TLS is reported")
  func provider() async throws {
    try await Bench.with { bench in
      let settings = try bench.settings(
        """
        admin:
          listen: unix:\(bench.folder)/admin.sock
          console:
            { listen: '127.0.0.1:0', url: 'https://console.example.test', cert_file: server.pem, key_file: server.key,
              oidc: { issuer: 'https://id.example.test/realm', client_id: a, groups: [{ name: a, role: view }] } }

        """)
      let proxies = ProxyVariables { $0 == "https_proxy" ? "http://127.0.0.1:1" : nil }
      let findings = await Preflight(settings, store: nil, at: Bench.now, proxies: proxies).run().map(bench.line)
      #expect(
        findings.contains(
          "passed: admin.console.oidc.issuer: id.example.test is reached through the proxy http://127.0.0.1:1 "
            + "(https_proxy)"), "\(findings)")
    }
  }

  @Test("Exceptions and faults are reported, and nothing without variables")
  func others() async throws {
    let relay = try ForwardProxyServer(.answer([]))
    defer { relay.stop() }
    let faulty = try await findings([
      "https_proxy": "https://127.0.0.1:\(relay.port)", "http_proxy": "socks5://hunter2@x",
    ])
    #expect(faulty.contains { $0.hasPrefix("failed: app_attest.android.status_list: the proxy https://127.0.0.1") })
    #expect(faulty.contains("failed: telemetry.otlp: http_proxy: a SOCKS proxy (socks5://) is not supported"))
    let excepted = try await findings(["http_proxy": "http://x", "no_proxy": ".example.test", "HTTPS_PROXY": ""])
    #expect(excepted.contains("passed: telemetry.otlp: collector.example.test is reached directly (no_proxy)"))
    let none = try await findings([:])
    #expect(!none.contains { $0.contains("proxy") })
  }
}
