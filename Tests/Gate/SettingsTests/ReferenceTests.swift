@testable import ConfigurationEngine
import Foundation
import TestSupport
import Testing

@testable import Settings

@Suite("Schema and reference match the table of settings")
struct ReferenceTests {
  @Test("The shipped schema is the one that the program prints (sallyport check --schema)")
  func shippedSchema() throws {
    #expect(try ProjectFile.text("config/sallyport.schema.json") == SettingsDocuments.gate.schema)
  }

  @Test("The shipped reference is the one that the program prints (sallyport check --reference)")
  func shippedReference() throws {
    let shipped = try ProjectFile.text("Sources/Gate/Settings/Settings.docc/Configuration.md")
    #expect(shipped == SettingsDocuments.gate.reference)
  }

  @Test("The example that is shipped is the one that the program prints (sallyport check --example)")
  func shippedExample() throws {
    #expect(try ProjectFile.text("config/sallyport.yaml") == SettingsDocuments.gate.example)
  }

  @Test("The reference has a row and the schema an entry for each key")
  func completeness() throws {
    let schema = try #require(
      JSONSerialization.jsonObject(with: Data(SettingsDocuments.gate.schema.utf8)) as? [String: Any])
    for key in SettingsTable.gate.keys {
      #expect(SettingsDocuments.gate.reference.contains("| `\(key.pattern)` | \(key.kind) | "))
      var place: [String: Any]? = schema
      for step in SettingPath(pattern: key.pattern, indices: []).steps {
        let parent = step == "[]" ? place : place?["properties"] as? [String: Any]
        place = parent?[step == "[]" ? "items" : step] as? [String: Any]
      }
      #expect((place?["description"] as? String)?.hasPrefix(key.meaning) == true, "\(key.pattern)")
    }
  }

  @Test("Each key has an example with a valid value")
  func examples() throws {
    for key in SettingsTable.gate.keys {
      let example = try #require(key.example, "\(key.pattern) needs an example")
      #expect(key.problem(example) == nil, "\(key.pattern)")
    }
  }

  @Test("Each section with a secret also has a key for a file, which may be a credential")
  func secrets() {
    let secrets = SettingsTable.gate.keys.filter(\.holdsSecret)
    #expect(!secrets.isEmpty)
    for secret in secrets {
      let section = secret.pattern.prefix { $0 != "." } + "."
      #expect(
        SettingsTable.gate.keys.contains {
          $0.pattern.hasPrefix(section) && $0.pattern.hasSuffix("_file") && $0.credential != nil
        }, "\(secret.pattern)")
    }
  }

  @Test("The schema accepts the example, also with its comments enabled")
  func schemaAcceptsExample() async throws {
    let workspace = try Workspace()
    try workspace.write(ExampleTests.everything(), to: "everything.yaml")
    let verdicts = try await SchemaValidator.verdicts(on: [
      ProjectFile.path("config/sallyport.yaml"), workspace.folder + "/everything.yaml",
    ])
    #expect(verdicts.map(\.errors) == [[], []])
  }

  @Test("The schema accepts every example and every default, bare and quoted")
  func schemaAcceptsValues() async throws {
    let workspace = try Workspace()
    var files: [String] = []
    for key in SettingsTable.gate.keys {
      for (number, text) in Set([key.example, key.standard].compactMap(\.self)).enumerated() {
        let path = SettingPath(pattern: key.pattern, indices: [])
        for (form, value) in [("bare", text), ("quoted", "\"\(text)\"")] where !(form == "bare" && text == "::") {
          let name = "\(key.pattern)-\(number)-\(form).yaml"
          try workspace.write(Self.document(path, value, of: key.condition), to: name)
          files.append("\(workspace.folder)/\(name)")
        }
      }
    }
    for (file, verdict) in zip(files, try await SchemaValidator.verdicts(on: files)) {
      // A single element lacks its required properties, which is not an error of the value.
      #expect(verdict.errors.filter { !$0.contains("is a required property") } == [], "\(file)")
    }
  }

  /// Returns a document that contains only `value` at `path`, and the platform that its key needs.
  private static func document(_ path: SettingPath, _ value: String, of condition: ElementCondition?) -> String {
    let element = path.steps.firstIndex(of: "[]").map { $0 + 1 }
    return path.steps.indices.reversed().reduce(value) { inner, index in
      let step = path.steps[index]
      let more = condition == .android && index == element ? "platform: android, " : ""
      return step == "[]" ? "[\(inner)]" : "{ \(more)\(step): \(inner) }"
    }
  }
}

@Suite("The effective settings")
struct EffectiveTests {
  /// Returns the settings without the parts that may differ between equivalent configurations.
  private static func meaning(_ settings: GateSettings) -> GateSettings {
    var settings = settings
    settings.warnings = []
    settings.effective = []
    settings.stateFolder = nil
    return settings
  }

  static let configurations = [
    "", "routes: []", "identity: { strip_headers: [] }", "app_attest: { apps: [] }",
    """
    listen: { address: "::1", port: 0 }
    tls: { min_version: 1.3 }
    app_attest:
      apps:
        - { team_id: AAABBBCCC1, bundle_id: a.b, environments: [development, production] }
        - { team_id: "1234567890", bundle_id: a.c, validation_category: { allow: [os, other], when_missing: refuse } }
    debug_mtls: { client_ca_file: "odd \\"name\\" # 'x'.pem", allow_subjects: ["CN=a\\\\, b: c", "CN=- d", "CN=null", "CN=é\\u2028"] }
    routes:
      - { path: /, upstream: "tcp://[::1]:1" }
      - { path: /a, upstream: wss://h, upstream_tls: { server_name: other }, audience: chat }
    session: { max_age: off, ping: off }
    identity: { strip_headers: ["X-A", "yes", "123"] }
    """,
  ]

  @Test("The printed settings load again to the same settings", arguments: configurations)
  func roundTrip(_ yaml: String) throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "odd \"name\" # 'x'.pem")
    let settings = try workspace.load(yaml: yaml)
    try workspace.write(settings.effectiveYAML, to: "elsewhere/effective.yaml")
    let again = try SettingsLoader(
      file: "elsewhere/effective.yaml", environment: [:], workingDirectory: workspace.folder
    ).load()
    #expect(Self.meaning(again) == Self.meaning(settings), "\(settings.effectiveYAML)")
    #expect(again.effective.map(\.text) == settings.effective.map(\.text))
  }

  @Test("Each value has its origin")
  func origins() throws {
    let workspace = try Workspace()
    let text = try workspace.load(
      yaml: "session: { ping: 10s }", dotenv: "SALLYPORT_SESSION__MAX_AGE=1h",
      environment: Workspace.tls.merging(["SALLYPORT_LISTEN__PORT": "6201"]) { $1 },
      flags: [FlagSetting(flag: "--set", key: "shutdown.drain_timeout", text: "5s")]
    ).effectiveYAML
    let lines = text.split(separator: "\n").map {
      $0.replacingOccurrences(of: "(?<=\\S)  +", with: "  ", options: .regularExpression)
    }
    for line in [
      "  port: 6201  # SALLYPORT_LISTEN__PORT", "  loops: auto  # default", "  ping: 10s  # gate.yaml:1:18",
      "  max_age: 1h  # .env:1 SALLYPORT_SESSION__MAX_AGE", "  drain_timeout: 5s  # --set",
      "  # password_file: not set",
    ] {
      #expect(lines.contains(line), "\(text)")
    }
  }

  @Test("The printed settings contain no password and load without errors")
  func masked() throws {
    let workspace = try Workspace()
    let settings = try workspace.load(yaml: "store: { url: 'postgres://u:hunter2@h/x?sslpassword=hunter3' }")
    #expect(settings.effectiveYAML.contains("postgres://u:…@h/x?sslpassword=…"))
    #expect(!settings.effectiveYAML.contains("hunter"))
    #expect(try workspace.faults(yaml: settings.effectiveYAML, environment: [:]) == [])
  }

  @Test("The printed settings show no key in the URL of another server")
  func maskedURLs() throws {
    let workspace = try Workspace()
    let text = try workspace.load(
      yaml: """
        app_attest: { android: { status_list: 'https://list.example/a?key=hunter4' } }
        telemetry: { otlp: 'https://collector.example/hunter5' }
        """
    ).effectiveYAML
    #expect(text.contains("https://list.example/a?***") && text.contains("https://collector.example/***"))
    #expect(!text.contains("hunter"))
  }

  @Test("Warnings are reported together with errors")
  func warningsWithFaults() throws {
    let workspace = try Workspace()
    try workspace.write("listen: { prot: 1 }\napp_attest: { enforcement: off }", to: "gate.yaml")
    let diagnostics = SettingsLoader(
      file: "gate.yaml", environment: Workspace.tls, workingDirectory: workspace.folder
    ).examine()
    #expect(diagnostics.settings == nil && diagnostics.faults.count == 1)
    #expect(diagnostics.warnings.contains { $0.key == "app_attest.enforcement" })
  }

  @Test("An app with a fault is not reported as missing")
  func faultyApp() throws {
    let workspace = try Workspace()
    try workspace.write("app_attest: { apps: [{ team_id: abc, bundle_id: com.example.app }] }", to: "gate.yaml")
    let diagnostics = SettingsLoader(
      file: "gate.yaml", environment: Workspace.tls, workingDirectory: workspace.folder
    ).examine()
    #expect(diagnostics.faults.map(\.key) == ["app_attest.apps[0].team_id"])
    #expect(!diagnostics.warnings.contains { $0.key == "app_attest.apps" }, "\(diagnostics.warnings)")
  }
}
