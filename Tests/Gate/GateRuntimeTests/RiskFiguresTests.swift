import AppAttest
import AttestGate
import ByteCoding
import ConfigurationEngine
import Cryptography
import Foundation
import GateService
import Observability
import SQLiteStore
import Settings
import SimulatedDevice
import StoreConformance
import TestSupport
import Testing

@testable import GateRuntime

@Suite("The number of keys by risk metric", .timeLimit(.minutes(2)))
struct RiskFiguresTests {
  /// The apps of a configuration: one with a threshold of 5, and one without a risk policy.
  private static func apps(in folder: String) throws -> [RiskApp] {
    let authority = AuthorityFolder(path: folder + "/authority")
    _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let key = folder + "/developer.p8"
    try P256PrivateKey().pkcs8PEM.write(toFile: key, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    try """
    version: 1
    tls: { cert_file: "\(authority.serverCertificatePath)", key_file: "\(authority.serverKeyPath)" }
    routes: [{ path: /, upstream: "ws://127.0.0.1:1" }]
    store: { url: "sqlite://\(folder)/state.db" }
    app_attest:
      apps:
        - team_id: AAABBBCCC1
          bundle_id: com.example.app
          risk: { key_file: developer.p8, key_id: AAABBBCCC1, threshold: 5, action: refuse }
        - { team_id: AAABBBCCC1, bundle_id: com.example.other }
        - { platform: android, package: com.example.app, signers: [\(String(repeating: "ab", count: 32))], risk: { threshold: 1 } }
        - { platform: android, package: com.example.other, signers: [\(String(repeating: "ab", count: 32))] }
    """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
    let loader = SettingsLoader(
      file: folder + "/gate.yaml", flags: [], environment: ["HOME": folder], workingDirectory: folder)
    return RiskApp.all(in: try loader.load().appAttest)
  }

  /// Registers a key with this metric, or without one.
  private func register(_ metric: Int?, in store: SQLiteStore) async throws {
    let registration = Fixture.registration()
    #expect(try await store.register(registration) == .inserted)
    let app = try #require(AppID(registration.key.app.text))
    let due = try await store.dueReceipts(of: [app], at: Fixture.now, limit: 100)
    let receipt = try #require(due.first { $0.key.keyID == registration.key.keyID })
    let later = Fixture.now.advanced(by: .seconds(100))
    let risk = metric.map { KeyRisk(metric: $0, at: Fixture.now) }
    #expect(try await store.settle(receipt, as: ReceiptSettlement(risk: risk, next: later)))
  }

  @Test("Metrics and status have the keys of apps with a policy by bucket, counted at most once a minute")
  func counted() async throws {
    try await Places.withTemporaryFolder { folder in
      let apps = try Self.apps(in: folder)
      let store = SQLiteStore(path: folder + "/state.db")
      let registry = MetricsRegistry()
      let figures = RiskFigures(store: store, registry: registry)
      func lines() async -> Set<String> {
        let text = String(decoding: await registry.exposition(), as: UTF8.self)
        return Set(
          text.split(separator: "\n").filter { $0.hasPrefix("sallyport_app_attest_risk_keys{") }.map(String.init))
      }
      for metric in [1, 1, 4, 5, 9, 60, nil] { try await register(metric, in: store) }
      let other = Fixture.registration(of: Fixture.key(of: "AAABBBCCC1.com.example.other"))
      #expect(try await store.register(other) == .inserted)
      for serial in [[1], [1], [2], [3]] as [[UInt8]] {
        _ = try await store.register(Fixture.registration(of: Fixture.androidKey(serial: serial)))
      }
      _ = try await store.register(Fixture.registration(of: Fixture.factoryKey()))

      #expect(await lines() == [])
      #expect(figures.states(of: apps)?.first?.text.hasSuffix("refuse above 5, not counted yet") == true)
      try await figures.refresh(for: apps)
      let android = "com.example.app"
      let expected = [
        "0": 0, "1": 2, "2": 0, "3": 0, "4": 1, "5-9": 2, "10-19": 0, "20-49": 0, "50+": 1, "unknown": 1,
      ]
      let app = "AAABBBCCC1.com.example.app"
      let onAndroid = expected.mapValues { _ in 0 }.merging(["1": 2, "2": 2, "unknown": 1]) { $1 }
      let samples = Set(
        [(app, expected), (android, onAndroid)].flatMap { app, counts in
          counts.map { #"sallyport_app_attest_risk_keys{app="\#(app)",metric="\#($0.key)"} \#($0.value)"# }
        })
      #expect(await lines() == samples)
      let states = try #require(figures.states(of: apps))
      #expect(
        states == [
          .init(app: app, action: "refuse", threshold: 5, assessed: 6, unknown: 1, above: 2),
          .init(app: android, action: "observe", threshold: 1, assessed: 4, unknown: 1, above: 2),
        ])
      #expect(states[0].text == "\(app): refuse above 5, 6 keys with a metric (2 above), 1 without")

      // A further count is not due yet.
      try await register(2, in: store)
      try await figures.refresh(for: apps)
      #expect(await lines() == samples)
      // A reload that ends the exchange ends the figures.
      try await figures.refresh(for: [])
      #expect(await lines() == [])
      #expect(figures.states(of: []) == nil)
      await store.close()
    }
  }
}
