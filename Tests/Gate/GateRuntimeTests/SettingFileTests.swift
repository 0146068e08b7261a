import ACME
import ByteCoding
import Commands
import ConfigurationEngine
import Foundation
import Logging
import Observability
import Settings
import SimulatedDevice
import TestSupport
import Testing

@testable import GateRuntime

/// Files may change between the check of the settings and their use, and for each reload.
@Suite("A file that a setting names is read again later")
struct SettingFileTests {
  /// Calls `body` with settings that name `file`, and its path.
  private func with(
    _ file: String, _ content: String, _ section: String, _ body: (GateSettings, _ path: String) throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let authority = AuthorityFolder(path: folder + "/authority")
      _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
      let path = folder + "/" + file
      try write(content.isEmpty ? String(contentsOfFile: authority.tlsAuthorityPath, encoding: .utf8) : content, path)
      let tls =
        section.hasPrefix("tls:") ? "" : "tls: { cert_file: authority/server.pem, key_file: authority/server.key }"
      try """
      store: { url: "sqlite://\(folder)/state.db" }
      routes: [{ upstream: 'ws://127.0.0.1:1' }]
      \(tls)
      \(section)
      """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
      let loader = SettingsLoader(file: "gate.yaml", flags: [], environment: [:], workingDirectory: folder)
      try body(loader.load(), path)
    }
  }

  private func write(_ text: String, _ path: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  /// Expects that `use` names the setting `key` and tells a missing file from one with other content.
  private func expectFaults(_ key: String, _ path: String, _ reason: String, _ use: () throws -> Void) throws {
    try write("prose", path)
    let other = #expect(throws: Failure.self) { try use() }
    #expect(other?.message.hasPrefix("\(key): \(path)") == true && other?.message.contains(reason) == true)
    try FileManager.default.removeItem(atPath: path)
    let missing = #expect(throws: Failure.self) { try use() }
    #expect(missing?.message == "\(key): \(path): No such file or directory (ENOENT)")
  }

  @Test("Roots: a missing file is not reported as one without certificates")
  func roots() async throws {
    let trust = "trust: { attestation_root_file: root.pem, receipt_root_file: root.pem }"
    try await with("root.pem", "", "app_attest: { \(trust) }") { settings, path in
      #expect(try GateComposition.receiptRoots(of: settings).count == 1)
      try expectFaults("app_attest.trust.receipt_root_file", path, "certificate") {
        _ = try GateComposition.receiptRoots(of: settings)
      }
    }
  }

  @Test("The key of an ACME account: a missing file is not reported as one without a key")
  func bindingKey() async throws {
    let section = "tls: { acme: { domains: [gate.example], eab: { key_id: kid, key_file: eab.key } } }"
    try await with("eab.key", "c2VjcmV0", section) { settings, path in
      let acme = try #require(settings.tls.acme)
      #expect(try acme.orderSettings().binding?.keyID == "kid")
      // A word is base64url, and white space alone is no key.
      try write(" \n", path)
      let other = #expect(throws: Failure.self) { try acme.orderSettings() }
      #expect(other?.message == "tls.acme.eab.key_file: \(path) contains no key in base64url")
      try FileManager.default.removeItem(atPath: path)
      let missing = #expect(throws: Failure.self) { try acme.orderSettings() }
      #expect(missing?.message == "tls.acme.eab.key_file: \(path): No such file or directory (ENOENT)")
    }
  }

  @Test("The header fields for a collector: a missing file is not reported as one without fields")
  func headerFields() async throws {
    let section = "telemetry: { otlp: 'http://127.0.0.1:1', headers_file: fields }"
    try await with("fields", "Authorization: Bearer x\n", section) { settings, path in
      let telemetry = try #require(settings.telemetry)
      func export() throws {
        _ = try TelemetryExporter(
          telemetry, registry: MetricsRegistry(), logger: Logger(label: "telemetry") { _ in SwiftLogNoOpLogHandler() })
      }
      try export()
      try expectFaults("telemetry.headers_file", path, "has no header fields", export)
    }
  }
}
