@testable import ConfigurationEngine
import Cryptography
import Foundation
import SimulatedDevice

@testable import Settings

extension FuzzTarget {
  static let configuration = FuzzTarget(
    name: "configuration", longest: 2048, words: ConfigurationInvariants.words,
    seeds: { ConfigurationInvariants.seeds.map { Array($0.utf8) } }, accepts: ConfigurationInvariants.check)
}

/// A configuration is accepted, or every fault is reported on one line with its place. An accepted configuration has
/// the same meaning after it is written and read again.
enum ConfigurationInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let diagnostics = examine(input, as: "gate.yaml")
    try require(diagnostics.settings == nil || diagnostics.faults.isEmpty, "a configuration with faults is refused")
    try require(diagnostics.settings != nil || !diagnostics.faults.isEmpty, "a refused configuration has a fault")
    let lines = 1 + String(decoding: input, as: UTF8.self).unicodeScalars.count { breaks.contains($0) }
    for fault in diagnostics.faults {
      try require(!fault.description.contains(where: \.isNewline), "a fault is reported on one line", "\(fault)")
      guard case .file(_, let line, let column) = fault.origin else { continue }
      try require((1...lines + 1).contains(line) && column >= 1, "a fault has a place in the file", "\(fault)")
    }
    for warning in diagnostics.warnings {
      try require(!warning.description.contains(where: \.isNewline), "a warning is reported on one line", "\(warning)")
    }
    guard let settings = diagnostics.settings else { return false }
    try checkWrittenOut(settings)
    return true
  }

  private static func checkWrittenOut(_ settings: GateSettings) throws(InvariantViolation) {
    let text = settings.effectiveYAML
    let again = examine(Array(text.utf8), as: "effective.yaml")
    guard let again = again.settings else {
      throw InvariantViolation(invariant: "the written configuration is accepted", detail: "\(again.faults)\n\(text)")
    }
    // The output masks the password, so the two texts differ.
    if text.contains("…") { return }
    try require(meaning(again) == meaning(settings), "the written configuration has the same meaning", text)
  }

  private static func meaning(_ settings: GateSettings) -> GateSettings {
    var settings = settings
    (settings.warnings, settings.effective, settings.stateFolder) = ([], [], nil)
    return settings
  }

  private static func examine(_ bytes: [UInt8], as name: String) -> ConfigurationDiagnostics<GateSettings> {
    do {
      try Data(bytes).write(to: folder.appendingPathComponent(name))
    } catch {
      Standard.error("error: \(error)")
      exit(70)
    }
    return SettingsLoader(
      file: name, environment: ["SALLYPORT_TLS__CERT_FILE": "cert.pem", "SALLYPORT_TLS__KEY_FILE": "key.pem"],
      workingDirectory: folder.path
    ).examine()
  }

  /// A folder of this process with a certificate and a key, in which a gate could be started.
  private static let folder: URL = {
    do {
      let folder = try Fixtures.folder("configuration-\(ProcessInfo.processInfo.processIdentifier)")
      let certificate = Fixtures.shared.authority.server
      try Data(certificate.certificate.pem.utf8).write(to: folder.appendingPathComponent("cert.pem"))
      let key = folder.appendingPathComponent("key.pem")
      try Data(certificate.key.pkcs8PEM.utf8).write(to: key)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key.path)
      return folder
    } catch {
      Standard.error("error: \(error)")
      exit(70)
    }
  }()

  /// The characters that end a line in YAML.
  private static let breaks: Set<Unicode.Scalar> = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"]

  static let words: [String] = punctuation + names

  private static let names = Set(
    SettingsTable.gate.keys.flatMap { $0.pattern.split(separator: ".") }
      .map { String($0.filter { $0 != "[" && $0 != "]" }) }
  ).sorted()

  private static let punctuation = [
    "{ ", " }", "[", "]", ": ", "- ", "\n  ", "\"", "'", "&a ", "*a", "!!str ", "? ", "|\n", "off", "5s", "~",
    "[]",
  ]

  static let seeds = [
    "", "version: 1", "routes: []", "listen: { address: \"::1\", port: 0, loops: 2 }\n",
    """
    app_attest:
      enforcement: monitor
      apps:
        - { team_id: AAABBBCCC1, bundle_id: a.b, environments: [development] }
        - team_id: "1234567890"
          bundle_id: a.c
          validation_category: { allow: [os, other], when_missing: refuse }
      challenge_ttl: 30s
    """,
    """
    routes:
      - { path: /, upstream: "tcp://[::1]:1" }
      - { path: /a, upstream: wss://h, forward: all, upstream_tls: { server_name: other }, audience: a }
      - { path: /b, upstream: "unix:/run/x.sock" }
    session: { max_age: off, ping: 10s, max_message: 1MiB }
    """,
    "store: { url: 'postgres://u:hunter2@h/x' }\nadmin: { listen: off }\nidentity: { strip_headers: [X-A, \"yes\"] }",
    "listen: &a { port: 1 }\nmetrics: *a\n", "listen:\n  port: 1\n  port: 2\n", "lisen: { port: 1 }", "\"a\\nb\": 1",
    "a: b: c",
    "session: { ping: 5 }", "- a\n- b", "%YAML 1.1\n---\nversion: 1\n...\n",
  ]
}
