import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The settings of a console over TLS")
struct ConsoleSettingsTests {
  /// A configuration with an admin server and the given settings of the console.
  private static func yaml(_ console: String, admin: String = "listen: unix:/run/admin.sock,") -> String {
    "admin: { \(admin) console: { \(console) } }\n"
  }

  private static let place = """
    listen: "0.0.0.0:7443", url: "https://console.example.com:7443", cert_file: cert.pem, key_file: key.pem
    """
  private static let people = #"client_ca_file: ca.pem, people: [{ subject: "CN=ada,O=Example", role: admin }]"#
  private static let provider =
    "oidc: { issuer: https://id.example.com, client_id: gate, groups: [{ name: gate-support, role: support }] }"

  @Test("Without a console nothing changes")
  func off() throws {
    #expect(try Workspace().load(yaml: "version: 1\n").console == nil)
    // As in the example of the configuration, which has every default.
    #expect(try Workspace().load(yaml: Self.yaml("oidc: { groups_claim: groups }")).console == nil)
  }

  @Test("Both ways to sign in are read, and no file of the console: the gate may not be able to read them")
  func everything() throws {
    let yaml = Self.yaml("\(Self.place), \(Self.people), crl_file: none.pem, \(Self.provider)")
    let console = try #require(try Workspace().load(yaml: yaml).console)
    #expect(console.listen.text == "0.0.0.0:7443" && console.url.text == "https://console.example.com:7443")
    #expect(console.clientAuthority?.file.hasSuffix("/ca.pem") == true)
    #expect(console.clientAuthority?.revocationListFile?.hasSuffix("/none.pem") == true)
    #expect(console.people.map(\.name) == ["CN=ada,O=Example"] && console.people.map(\.role) == [.admin])
    let provider = try #require(console.provider)
    #expect(provider.issuer == "https://id.example.com" && provider.clientID == "gate" && provider.secretFile == nil)
    #expect(provider.scopes == ["openid"] && provider.groupsClaim == "groups")
    #expect(provider.groups.map(\.name) == ["gate-support"] && provider.groups.map(\.role) == [.support])
  }

  struct Fault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let console: String
    var admin = "listen: unix:/run/admin.sock,"
    let expected: String
  }

  static let faults = [
    Fault(testDescription: "no address", console: people, expected: "has no effect without admin.console.listen"),
    Fault(
      testDescription: "no admin server", console: "\(place), \(people)", admin: "", expected: "needs admin.listen"),
    Fault(testDescription: "no one can sign in", console: place, expected: "no one can sign in"),
    Fault(
      testDescription: "no TLS", console: #"listen: "0.0.0.0:7443", url: "https://c.example", "# + people,
      expected: "admin.console.cert_file: missing"),
    Fault(
      testDescription: "no URL", console: #"listen: "0.0.0.0:7443", cert_file: a, key_file: b, "# + people,
      expected: "admin.console.url: missing"),
    Fault(
      testDescription: "a URL with a path",
      console: place.replacing("com:7443", with: "com:7443/console") + ", " + people,
      expected: "is not https:// with a host"),
    Fault(
      testDescription: "plain HTTP", console: place.replacing("https:", with: "http:") + ", " + people,
      expected: "is not https:// with a host"),
    Fault(
      testDescription: "no certificate has a role", console: "\(place), client_ca_file: ca.pem",
      expected: "no certificate has a role"),
    Fault(
      testDescription: "people without a CA",
      console: "\(place), \(provider), people: [{ subject: \"CN=ada\", role: view }]",
      expected: "admin.console.people: has no effect without admin.console.client_ca_file"),
    Fault(
      testDescription: "a list without a CA", console: "\(place), \(provider), crl_file: a.pem",
      expected: "admin.console.crl_file: has no effect"),
    Fault(
      testDescription: "a person twice",
      console: place
        + #", client_ca_file: ca.pem, people: [{ subject: "CN=a", role: view }, { subject: "CN=a", role: admin }]"#,
      expected: #""CN=a" has a role already"#),
    Fault(
      testDescription: "an unknown role", console: "\(place), " + people.replacing("admin }", with: "root }"),
      expected: "\"root\" is not one of view, support, admin"),
    Fault(
      testDescription: "a person without a role",
      console: place + #", client_ca_file: ca.pem, people: [{ subject: "CN=a" }]"#,
      expected: "admin.console.people[0].role: missing"),
    Fault(
      testDescription: "a subject in another notation",
      console: "\(place), " + people.replacing("CN=ada,O", with: "ada, O"),
      expected: "each part of a subject is TYPE=VALUE"),
    Fault(
      testDescription: "no group has a role",
      console: "\(place), oidc: { issuer: https://id.example.com, client_id: gate }", expected: "no group has a role"),
    Fault(
      testDescription: "no client id",
      console: "\(place), oidc: { issuer: https://id.example.com, groups: [{ name: a, role: view }] }",
      expected: "admin.console.oidc.client_id: missing"),
    Fault(
      testDescription: "no issuer",
      console: "\(place), \(people), oidc: { client_id: gate, groups: [{ name: a, role: view }] }",
      expected: "has no effect without admin.console.oidc.issuer"),
    Fault(
      testDescription: "a plain issuer", console: "\(place), " + provider.replacing("https:", with: "http:"),
      expected: "is not an https URL, or an http URL on loopback"),
    Fault(
      testDescription: "a group twice",
      console: "\(place), " + provider.replacing("support }]", with: "support }, { name: gate-support, role: view }]"),
      expected: "\"gate-support\" has a role already"),
  ]

  @Test("A fault is named, and none of them gives a role", arguments: faults)
  func fault(_ fault: Fault) throws {
    let found = try Workspace().faults(yaml: Self.yaml(fault.console, admin: fault.admin))
    #expect(found.contains { $0.contains(fault.expected) }, "\(found)")
  }

  @Test("The console and another listener cannot share a port")
  func sharedPort() throws {
    let yaml = Self.yaml("\(Self.place), \(Self.people)") + "listen: { port: 7443 }\n"
    #expect(try Workspace().faults(yaml: yaml).contains { $0.contains("port 7443 is used by listen") })
  }

  @Test("A fault of the store does not keep commands that need only the admin server from it")
  func adminAlone() throws {
    let workspace = try Workspace()
    let loader = SettingsLoader(file: "gate.yaml", environment: [:], workingDirectory: workspace.folder)
    try workspace.write("admin: { listen: unix:/run/admin.sock }\nstore: { uri: x }\n", to: "gate.yaml")
    #expect(try loader.loadAdmin()?.address == .unix(path: "/run/admin.sock"))
    #expect(throws: (any Error).self) { try loader.loadPlaces() }
    try workspace.write("store: { uri: x }\n", to: "gate.yaml")
    #expect(try loader.loadAdmin() == nil)
    try workspace.write("admin: { listen: nowhere }\n", to: "gate.yaml")
    #expect(throws: (any Error).self) { try loader.loadAdmin() }
  }

  @Test("A fault of the console does not keep commands from the admin server")
  func places() throws {
    let workspace = try Workspace()
    try workspace.write(Self.yaml("listen: nowhere"), to: "gate.yaml")
    let loader = SettingsLoader(file: "gate.yaml", environment: [:], workingDirectory: workspace.folder)
    #expect(try loader.loadPlaces().admin?.address == .unix(path: "/run/admin.sock"))
    #expect(throws: (any Error).self) { try loader.loadConsole() }
    try workspace.write("admin: { listen: unix:/run/admin.sock }\n", to: "gate.yaml")
    #expect(try loader.loadConsole() == nil)
  }
}
