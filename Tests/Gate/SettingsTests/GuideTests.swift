@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The variables of the guide for app developers work as printed")
struct GuideTests {
  /// Part 6 of the guide, copied unchanged.
  static let block = """
    REQUIRE_APP_AUTH=true
    APPATTEST_BUNDLE_ID=com.example.yourapp   # must match exactly
    APPATTEST_TEAM_ID=AAABBBCCC1             # 10-char Apple Developer team ID
    MTLS_CLIENT_CA_PATH=./config/client-ca/ca.pem  # for simulator fallback
    """

  @Test("E-028 The guide's block with a certificate starts the gate")
  func block() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "config/client-ca/ca.pem")
    let settings = try workspace.load(
      yaml: "tls:\n  cert_file: cert.pem\n  key_file: key.pem\n", dotenv: Self.block, environment: [:])
    #expect(settings.appAttest.enforcement == .enforce)
    #expect(
      settings.appAttest.apps == [
        .init(
          teamID: "AAABBBCCC1", bundleID: "com.example.yourapp", environments: [.production], allowedCategories: nil,
          missingCategory: .accept)
      ])
    #expect(settings.debugMTLS?.clientCAFile == "\(workspace.folder)/config/client-ca/ca.pem")
    #expect(settings.listen.port == 6200)
    #expect(
      settings.routes == [.init(path: "/", upstreams: [.webSocket(host: "127.0.0.1", port: 8080)], forward: .upgrades)])
    #expect(
      settings.warnings.map(\.description) == [
        "routes: not set: / is forwarded to ws://127.0.0.1:8080",
        ".env:4: debug_mtls.client_ca_file: client certificates admit debug builds, and "
          + "AAABBBCCC1.com.example.yourapp has environment production",
      ])
  }

  @Test("The guide's block without a certificate is refused, with a hint")
  func blockWithoutCertificate() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "config/client-ca/ca.pem")
    let error = try #require(throws: ConfigurationErrors.self) {
      try workspace.load(dotenv: Self.block, environment: [:])
    }
    #expect(error.faults.map(\.description) == ["tls.cert_file: missing", "tls.key_file: missing"])
    #expect(
      error.description.hasPrefix(
        "error: tls.cert_file: missing\nerror: tls.key_file: missing\nhint: set tls: { cert_file"))
    #expect(error.description.split(separator: "\n").count == 3)
  }

  @Test("The guide's block without its authority is refused with its line")
  func blockWithoutAuthority() throws {
    let workspace = try Workspace()
    #expect(
      try workspace.faults(dotenv: Self.block) == [
        ".env:4: debug_mtls.client_ca_file: cannot read DIR/config/client-ca/ca.pem: No such file or directory (ENOENT)"
      ])
  }

  @Test("A variable of the environment overrides the same one in .env")
  func realEnvironmentWins() throws {
    let workspace = try Workspace()
    let settings = try workspace.load(
      dotenv: "REQUIRE_APP_AUTH=true", environment: Workspace.tls.merging(["REQUIRE_APP_AUTH": "false"]) { $1 })
    #expect(settings.appAttest.enforcement == .off)
    #expect(
      settings.warnings.map(\.description).contains(
        "REQUIRE_APP_AUTH: app_attest.enforcement: enforcement is OFF: all clients are admitted without verification"))
  }

  @Test(
    "An incomplete app is a warning, as is a configuration without an app",
    arguments: [
      ("", "app_attest.apps: no app configured: registration answers 503"),
      ("APPATTEST_TEAM_ID=AAABBBCCC1", ".env:1: APPATTEST_TEAM_ID: has no effect: APPATTEST_BUNDLE_ID is not set"),
      ("APPATTEST_BUNDLE_ID=a.b", ".env:1: APPATTEST_BUNDLE_ID: has no effect: APPATTEST_TEAM_ID is not set"),
      (
        "APPATTEST_TEAM_ID=\nAPPATTEST_BUNDLE_ID=a.b",
        ".env:2: APPATTEST_BUNDLE_ID: has no effect: APPATTEST_TEAM_ID is not set"
      ),
    ])
  func halfConfigured(_ dotenv: String, _ warning: String) throws {
    let workspace = try Workspace()
    let settings = try workspace.load(dotenv: dotenv)
    #expect(settings.appAttest.apps.isEmpty)
    #expect(settings.warnings.map(\.description).contains(warning))
    #expect(
      settings.warnings.map(\.description).contains("app_attest.apps: no app configured: registration answers 503"))
  }

  static let twoApps = """
    app_attest:
      enforcement: enforce
      apps:
        - { team_id: AAABBBCCC1, bundle_id: a.b }
        - { team_id: AAABBBCCC1, bundle_id: a.dev, environments: [development] }
    debug_mtls: { client_ca_file: cert.pem }
    """

  @Test(
    "A variable and a key with the same value are accepted",
    arguments: [
      "REQUIRE_APP_AUTH=true", "MTLS_CLIENT_CA_PATH=./cert.pem", "APPATTEST_TEAM_ID=AAABBBCCC1",
      "APPATTEST_BUNDLE_ID=a.b", "APPATTEST_TEAM_ID=AAABBBCCC1\nAPPATTEST_BUNDLE_ID=a.b",
    ])
  func agreement(_ dotenv: String) throws {
    let workspace = try Workspace()
    #expect(try workspace.faults(yaml: Self.twoApps, dotenv: dotenv) == [])
  }

  @Test(
    "A variable and a key with different values are an error that names both places",
    arguments: [
      (
        "REQUIRE_APP_AUTH=false",
        ".env:1: REQUIRE_APP_AUTH: sets app_attest.enforcement to off, but gate.yaml:2:16 sets enforce"
      ),
      (
        "MTLS_CLIENT_CA_PATH=key.pem",
        ".env:1: MTLS_CLIENT_CA_PATH: sets debug_mtls.client_ca_file to DIR/key.pem, but gate.yaml:6:31 sets "
          + "DIR/cert.pem"
      ),
      (
        "APPATTEST_TEAM_ID=ZZZBBBCCC1",
        ".env:1: APPATTEST_TEAM_ID: names the app ZZZBBBCCC1.* in environment production, but app_attest.apps "
          + "does not list it (gate.yaml:3:3)"
      ),
      (
        "APPATTEST_TEAM_ID=AAABBBCCC1\nAPPATTEST_BUNDLE_ID=a.dev",
        ".env:1: APPATTEST_TEAM_ID: names the app AAABBBCCC1.a.dev in environment production, but "
          + "app_attest.apps does not list it (gate.yaml:3:3)"
      ),
    ])
  func disagreement(_ dotenv: String, _ fault: String) throws {
    let workspace = try Workspace()
    #expect(try workspace.faults(yaml: Self.twoApps, dotenv: dotenv) == [fault])
  }
}
