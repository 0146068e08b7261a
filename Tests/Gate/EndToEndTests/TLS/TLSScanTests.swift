import Foundation
import SimulatedDevice
import TestSupport
import Testing

/// Runs independent TLS scanners against the gate.
@Suite(
  "TLS scans", .serialized, .timeLimit(.minutes(15)),
  .enabled(if: ProcessInfo.processInfo.environment["SALLYPORT_TEST_TLS"] != nil, "scripts/test --tls"))
struct TLSScanTests {
  /// Runs a gate that also requests client certificates.
  private func serving(_ body: (RunningGate) async throws -> Void) async throws {
    try await RunningGate.serving(GateConfiguration(clientAuthority: "tls-ca.pem"), body)
  }

  private func run(_ tool: String, _ arguments: [String], in folder: String) async throws -> [String] {
    let (_, output, errors) = try await ChildProcess.run(
      Places.tool(tool), arguments, in: folder, within: .seconds(600))
    try #require(!output.isEmpty, "\(errors)")
    return output.map { $0.trimmingCharacters(in: .whitespaces) }
  }

  private static let ciphers12 = [
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305",
  ]
  private static let ciphers13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]

  @Test("sslscan finds TLS 1.2 and 1.3 with AEAD ciphers and four curves, and no renegotiation")
  func sslscan() async throws {
    try await serving { gate in
      let output = try await run("sslscan", ["--no-colour", "127.0.0.1:\(gate.port)"], in: gate.folder)
      expectVersions(in: output)
      expectCiphers(in: output)
    }
  }

  private func expectVersions(in output: [String]) {
    let words = output.map { $0.split(separator: " ").joined(separator: " ") }
    let expected = [
      "SSLv2 disabled", "SSLv3 disabled", "TLSv1.0 disabled", "TLSv1.1 disabled", "TLSv1.2 enabled", "TLSv1.3 enabled",
      "Session renegotiation not supported", "Server supports TLS Fallback SCSV",
      "TLSv1.3 not vulnerable to heartbleed",
      "TLSv1.2 not vulnerable to heartbleed",
    ]
    for line in expected { #expect(words.contains(line), "\(line)") }
  }

  private func expectCiphers(in output: [String]) {
    let accepted = output.filter { $0.hasPrefix("Preferred") || $0.hasPrefix("Accepted") }
      .map { $0.split(separator: " ").map { String($0) } }
    #expect(Set(accepted.filter { $0[1] == "TLSv1.2" }.map { $0[4] }) == Set(Self.ciphers12))
    #expect(Set(accepted.filter { $0[1] == "TLSv1.3" }.map { $0[4] }) == Set(Self.ciphers13))
    let groups = output.drop { !$0.hasPrefix("Server Key Exchange Group") }.dropFirst().prefix { $0.hasPrefix("TLSv") }
    let names = groups.compactMap { $0.split(separator: " ").dropFirst(3).first.map { String($0) } }
    #expect(Set(names) == ["x25519", "secp256r1", "secp384r1", "secp521r1"])
  }

  @Test("nmap grades every cipher A, and finds no compression")
  func nmap() async throws {
    try await serving { gate in
      let output = try await run(
        "nmap", ["-Pn", "--script", "ssl-enum-ciphers", "-p", "\(gate.port)", "127.0.0.1"], in: gate.folder)
      let versions = output.compactMap { $0.firstMatch(of: /(TLSv1\.\d|SSLv\d):/)?.output.1 }
      #expect(versions == ["TLSv1.2", "TLSv1.3"], "\(output)")
      let ciphers = output.filter { $0.contains("TLS_") }
      #expect(ciphers.count == 6 && ciphers.allSatisfy { $0.hasSuffix(" - A") }, "\(ciphers)")
      #expect(output.contains { $0.hasSuffix(" NULL") } && !output.contains { $0.hasSuffix(" DEFLATE") })
      #expect(output.contains { $0.hasSuffix("least strength: A") } && !output.contains { $0.contains("warnings:") })
    }
  }

  /// Findings of testssl.sh about the certificate of the test's own authority, which cannot be revoked.
  private static let notTheGates: Set<String> = ["cert_revocation"]

  @Test("testssl.sh has no serious findings")
  func testssl() async throws {
    try await serving { gate in
      _ = try await run(
        "testssl",
        [
          // Protocols, ciphers, forward secrecy, preferences, the certificate, and every known vulnerability.
          // Excludes the simulation of old browsers.
          "-p", "-s", "-f", "-P", "-S", "-U", "--quiet", "--color", "0", "--warnings", "off", "--jsonfile",
          gate.folder + "/testssl.json", "--add-ca",
          gate.certificateAuthority, "localhost:\(gate.port)",
        ], in: gate.folder)
      struct Finding: Decodable {
        let id: String
        let severity: String
        let finding: String
      }
      let content = try Data(contentsOf: URL(filePath: gate.folder + "/testssl.json"))
      let findings = try JSONDecoder().decode([Finding].self, from: content)
      let failures = findings.filter {
        !["OK", "INFO", "LOW", "WARN"].contains($0.severity)
          && !Self.notTheGates.contains($0.id)
      }
      for failure in failures { Issue.record("\(failure.severity) \(failure.id): \(failure.finding)") }
      print("TLSScanTests: testssl.sh has \(findings.count) findings, \(failures.count) failures")
      #expect(findings.count > 60)
    }
  }
}
