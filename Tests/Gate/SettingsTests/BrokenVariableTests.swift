@testable import ConfigurationEngine
import Foundation
import Testing

@testable import Settings

/// Variables or flags that must not start a gate, and all errors that the gate reports for them.
struct BrokenVariables: Sendable, CustomTestStringConvertible {
  let title: String
  var environment: [String: String] = [:]
  var dotenv = ""
  var flags: [FlagSetting] = []
  let faults: [String]
  var testDescription: String { title }
}

@Suite("An error outside the file is reported with its variable, line or flag")
struct BrokenVariableTests {
  @Test("All errors are reported, with their places", arguments: variables + dotenvs + flags)
  func faults(_ broken: BrokenVariables) throws {
    let workspace = try Workspace()
    let environment = broken.environment.merging(Workspace.tls) { given, _ in given }
    #expect(
      try workspace.faults(dotenv: broken.dotenv, environment: environment, flags: broken.flags) == broken.faults)
  }

  static let variables: [BrokenVariables] = [
    BrokenVariables(
      title: "a bad value", environment: ["SALLYPORT_LISTEN__PORT": "x"],
      faults: ["SALLYPORT_LISTEN__PORT: listen.port: \"x\" is not a port number, 0 to 65535"]),
    BrokenVariables(
      title: "an empty value", environment: ["SALLYPORT_LISTEN__PORT": ""],
      faults: ["SALLYPORT_LISTEN__PORT: listen.port: value is empty"]),
    BrokenVariables(
      title: "an unknown key", environment: ["SALLYPORT_LISTEN__PROT": "1"],
      faults: ["SALLYPORT_LISTEN__PROT: listen.prot: unknown key (did you mean SALLYPORT_LISTEN__PORT)"]),
    BrokenVariables(
      title: "a section", environment: ["SALLYPORT_APP_ATTEST__TRUST": "x"],
      faults: ["SALLYPORT_APP_ATTEST__TRUST: app_attest.trust: is a section: each of its keys has its own variable"]),
    BrokenVariables(
      title: "a list", environment: ["SALLYPORT_IDENTITY__STRIP_HEADERS": "A,B"],
      faults: [
        "SALLYPORT_IDENTITY__STRIP_HEADERS: identity.strip_headers: is a list: each element has its own "
          + "variable (did you mean SALLYPORT_IDENTITY__STRIP_HEADERS__0)"
      ]),
    BrokenVariables(
      title: "a list with a gap", environment: ["SALLYPORT_IDENTITY__STRIP_HEADERS__4000000000": "A"],
      faults: [
        "SALLYPORT_IDENTITY__STRIP_HEADERS__4000000000: identity.strip_headers[4000000000]: element 0 before "
          + "it is missing"
      ]),
    BrokenVariables(
      title: "a name with three underscores", environment: ["SALLYPORT_A____B": "1"],
      faults: ["SALLYPORT_A____B: SALLYPORT_A____B: expected the form SALLYPORT_A__B"]),
    BrokenVariables(
      title: "neither true nor false", environment: ["REQUIRE_APP_AUTH": "yes"],
      faults: ["REQUIRE_APP_AUTH: \"yes\" is neither true nor false"]),
    BrokenVariables(
      title: "true in capitals", environment: ["REQUIRE_APP_AUTH": "TRUE"],
      faults: ["REQUIRE_APP_AUTH: \"TRUE\" is neither true nor false (did you mean true)"]),
    BrokenVariables(
      title: "a team too short", environment: ["APPATTEST_TEAM_ID": "AAABBBCCC", "APPATTEST_BUNDLE_ID": "a.b"],
      faults: ["APPATTEST_TEAM_ID: \"AAABBBCCC\" has 9 characters instead of ten of A-Z and 0-9"]),
    BrokenVariables(
      title: "a missing authority", environment: ["MTLS_CLIENT_CA_PATH": "./config/ca.pem"],
      faults: [
        "MTLS_CLIENT_CA_PATH: debug_mtls.client_ca_file: cannot read DIR/config/ca.pem: No such file or "
          + "directory (ENOENT)"
      ]),
    BrokenVariables(
      title: "a missing certificate", environment: ["SALLYPORT_TLS__CERT_FILE": "no.pem"],
      faults: [
        "SALLYPORT_TLS__CERT_FILE: tls.cert_file: cannot read DIR/no.pem: No such file or directory (ENOENT)"
      ]),
  ]

  static let dotenvs: [BrokenVariables] = [
    BrokenVariables(
      title: "a line that sets nothing", dotenv: "# mine\n\nAPPATTEST_TEAM_ID",
      faults: [".env:3: expected NAME=value"]),
    BrokenVariables(
      title: "a quote that is not closed", dotenv: "A='x",
      faults: [".env:1: A: the quotes are not closed, or text follows them"]),
    BrokenVariables(
      title: "text after a quote", dotenv: "A=\"x\"y",
      faults: [".env:1: A: the quotes are not closed, or text follows them"]),
    BrokenVariables(
      title: "a name given twice", dotenv: "A=1\nexport A=2", faults: [".env:2: A: set twice, first in line 1"]),
    BrokenVariables(
      title: "a name that begins with a digit", dotenv: "1A=1", faults: [".env:1: expected NAME=value"]),
    BrokenVariables(
      title: "a bad value", dotenv: "X=1\nAPPATTEST_TEAM_ID=aaabbbccc1\nAPPATTEST_BUNDLE_ID=com..x",
      faults: [
        ".env:2: APPATTEST_TEAM_ID: \"aaabbbccc1\" contains characters other than A-Z and 0-9 (did you mean "
          + "AAABBBCCC1)",
        ".env:3: APPATTEST_BUNDLE_ID: \"com..x\" has an empty part",
      ]),
    BrokenVariables(
      title: "a bad value of a key", dotenv: "SALLYPORT_LISTEN__PORT=x",
      faults: [".env:1: listen.port: \"x\" is not a port number, 0 to 65535"]),
  ]

  static let flags: [BrokenVariables] = [
    BrokenVariables(
      title: "a bad value of a flag", flags: [FlagSetting(flag: "--port", key: "listen.port", text: "x")],
      faults: ["--port: listen.port: \"x\" is not a port number, 0 to 65535"]),
    BrokenVariables(
      title: "an unknown key of a flag", flags: [FlagSetting(flag: "--set", key: "listen.prot", text: "1")],
      faults: ["--set: listen.prot: unknown key (did you mean listen.port)"]),
    BrokenVariables(
      title: "an invalid key", flags: [FlagSetting(flag: "--set", key: "routes[", text: "1")],
      faults: ["--set: routes[: not a valid key; expected a path such as routes[0].upstream"]),
    BrokenVariables(
      title: "a section for a flag", flags: [FlagSetting(flag: "--set", key: "listen", text: "1")],
      faults: ["--set: listen: is a section: set one of its keys"]),
    BrokenVariables(
      title: "a list for a flag", flags: [FlagSetting(flag: "--set", key: "routes", text: "1")],
      faults: ["--set: routes: is a list (did you mean routes[0])"]),
  ]

  @Test("Errors in the file, .env, variables and flags are all reported, in this order")
  func allSources() throws {
    let workspace = try Workspace()
    let faults = try workspace.faults(
      yaml: "session: { ping: 1 }\nlisten: { port: x }", dotenv: "REQUIRE_APP_AUTH=maybe",
      environment: ["SALLYPORT_STORE__URL": "x"],
      flags: [FlagSetting(flag: "--port", key: "listen.port", text: "y")])
    #expect(
      faults.map { $0.split(separator: ": ").first.map(String.init) } == [
        "gate.yaml:1:1", "gate.yaml:1:1", "gate.yaml:1:18", "gate.yaml:2:17", ".env:1", "SALLYPORT_STORE__URL",
        "--port",
      ])
  }

  @Test("An unreadable file is named, with the system's reason")
  func unreadableFile() throws {
    let workspace = try Workspace()
    let loader = SettingsLoader(
      file: "none.yaml", environment: Workspace.tls, workingDirectory: workspace.folder)
    let error = try #require(throws: ConfigurationErrors.self) { try loader.load() }
    #expect(
      error.faults.map(\.description) == [
        "none.yaml:1:1: cannot read the file: No such file or directory (ENOENT)"
      ])
  }

  @Test("A file without a name is refused")
  func namelessFile() throws {
    let workspace = try Workspace()
    let loader = SettingsLoader(file: "", environment: Workspace.tls, workingDirectory: workspace.folder)
    let error = try #require(throws: ConfigurationErrors.self) { try loader.load() }
    #expect(error.faults.map(\.description) == ["the name of the configuration file is empty"])
  }

  @Test("A file that is not text is refused")
  func binaryFile() throws {
    let workspace = try Workspace()
    let loader = SettingsLoader(
      file: "/bin/sh", environment: Workspace.tls, workingDirectory: workspace.folder)
    let error = try #require(throws: ConfigurationErrors.self) { try loader.load() }
    let faults = error.faults.map(\.description)
    #expect(faults.count == 1 && faults[0].hasPrefix("/bin/sh:") && faults[0].hasSuffix(": not UTF-8"), "\(faults)")
    try Data("a: b\nc: \u{e4}".utf8 + [0x20, 0xFF, 0x0A, 0xFE]).write(to: URL(filePath: workspace.folder + "/x.yaml"))
    let other = SettingsLoader(file: "x.yaml", environment: Workspace.tls, workingDirectory: workspace.folder)
    let second = try #require(throws: ConfigurationErrors.self) { try other.load() }
    #expect(second.faults.map(\.description) == ["x.yaml:2:6: not UTF-8"])
  }
}
