import ByteCoding
import ConfigurationEngine
import Foundation
import GateService
import Settings
import SimulatedDevice
import TestSupport
import Testing

@testable import GateRuntime

@Suite("Limits of a configuration")
struct LimitTests {
  private func limits(_ text: String) async throws -> RequestLimits {
    try await Places.withTemporaryFolder { folder in
      let authority = AuthorityFolder(path: folder + "/authority")
      _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
      try """
      version: 1
      tls: { cert_file: "\(authority.serverCertificatePath)", key_file: "\(authority.serverKeyPath)" }
      routes: [{ path: /, upstream: "ws://127.0.0.1:1" }]
      store: { url: "sqlite://\(folder)/state.db" }
      limits: \(text)
      """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
      let loader = SettingsLoader(
        file: folder + "/gate.yaml", flags: [], environment: ["HOME": folder], workingDirectory: folder)
      return try loader.load().limits.requests
    }
  }

  @Test("Each limit of the file is one of the service's")
  func all() async throws {
    var expected = RequestLimits()
    expected.sessions = 90
    (expected.sessionsPerKey, expected.closesOldestSessionOfKey) = (3, true)
    expected.challengesPerAddress = Rate(1, every: .seconds(10))
    expected.registrationsPerAddress = Rate(2, every: .seconds(20))
    expected.upgradesPerAddress = Rate(4, every: .seconds(40))
    expected.upgradesPerKey = Rate(5, every: .seconds(50))
    let found = try await limits(
      """
      { global_sessions: 90, per_ip: { challenges: 1/10s, registrations: 2/20s, upgrades: 4/40s },
        per_key: { sessions: 3, when_full: close_oldest, upgrades: 5/50s } }
      """)
    #expect(found == expected)
  }

  @Test("A key has 16 sessions unless the file says otherwise, and further ones are refused")
  func usual() async throws {
    let usual = try await limits("{ global_sessions: 90 }")
    #expect(usual.sessionsPerKey == 16 && !usual.closesOldestSessionOfKey)
    #expect(try await limits("{ per_key: { sessions: off } }").sessionsPerKey == nil)
  }
}
