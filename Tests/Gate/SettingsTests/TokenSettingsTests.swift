import Testing

@testable import Settings

@Suite("The settings of tokens")
struct TokenSettingsTests {
  @Test(
    "Without audiences, no tokens are issued",
    arguments: ["", "tokens: { audiences: [] }", "tokens: { lifetime: 60s }"])
  func off(_ yaml: String) throws {
    #expect(try Workspace().load(yaml: "version: 1\n" + yaml).tokens == nil)
  }

  @Test("Audiences alone are enough: tokens live five minutes, and proofs name the request's host")
  func least() throws {
    let tokens = try #require(try Workspace().load(yaml: "tokens: { audiences: [ledger] }").tokens)
    #expect(tokens == .init(audiences: ["ledger"], lifetime: .seconds(300), url: nil))
    let fromVariable = try Workspace().load(
      environment: Workspace.tls.merging(["SALLYPORT_TOKENS__AUDIENCES__0": "https://api.example"]) { $1 })
    #expect(fromVariable.tokens?.audiences == ["https://api.example"])
  }

  @Test("Everything is read")
  func everything() throws {
    let yaml = """
      tokens:
        audiences: ["https://api.example.com", ledger]
        lifetime: 90s
        url: https://gate.example.com:8443/gate/token
      """
    #expect(
      try Workspace().load(yaml: yaml).tokens
        == .init(
          audiences: ["https://api.example.com", "ledger"], lifetime: .seconds(90),
          url: "https://gate.example.com:8443/gate/token"))
  }

  @Test("A client of an authorization server has all apps, or those that it names; audiences are not needed")
  func clients() throws {
    let yaml = """
      app_attest:
        apps:
          - { team_id: AAAABBBBCC, bundle_id: com.example.a }
          - { team_id: AAAABBBBCC, bundle_id: com.example.b }
      tokens:
        clients:
          - { client_id: all }
          - client_id: one
            apps: [AAAABBBBCC.com.example.b]
            lifetime: 30m
            claims: ["wallet_name=A = B"]
      """
    let tokens = try #require(try Workspace().load(yaml: yaml).tokens)
    #expect(tokens.audiences.isEmpty)
    #expect(
      tokens.clients == [
        .init(
          id: "all", apps: ["AAAABBBBCC.com.example.a", "AAAABBBBCC.com.example.b"], lifetime: .seconds(3600),
          claims: []),
        .init(
          id: "one", apps: ["AAAABBBBCC.com.example.b"], lifetime: .seconds(1800),
          claims: [.init(name: "wallet_name", value: "A = B")]),
      ])
  }

  static let faulty: [(yaml: String, fault: String)] = [
    ("clients: [{ lifetime: 1h }]", "tokens.clients[0].client_id: missing"),
    (
      "clients: [{ client_id: a }, { client_id: a }]",
      "tokens.clients[1].client_id: the client \"a\" is configured twice"
    ),
    ("clients: [{ client_id: a, lifetime: 2h }]", "tokens.clients[0].lifetime: is longer than identity.key_overlap"),
    ("clients: [{ client_id: a, lifetime: 25h }]", "25h is out of range: 1m to 1d"),
    ("clients: [{ client_id: a, apps: [b] }]", "tokens.clients[0].apps[0]: \"b\" is not in app_attest.apps"),
    ("clients: [{ client_id: a, claims: [x] }]", "is not NAME=VALUE, with a name in ASCII without blanks"),
    ("clients: [{ client_id: a, claims: ['sub=x'] }]", "sub is a claim of the gate's own"),
    ("clients: [{ client_id: a, claims: [x=1, x=2] }]", "tokens.clients[0].claims: a claim is there twice"),
    ("clients: [{ client_id: a, apps: [] }]", "tokens.clients[0].apps: empty list; leave it out for all apps"),
    ("clients: [{ client_id: 'käufer' }]", "tokens.clients[0].client_id: \"käufer\" is not printable ASCII"),
    ("audiences: ['']", "tokens.audiences[0]: value is empty"),
    ("audiences: [a, a]", "tokens.audiences[1]: given twice"),
    ("audiences: [\"a\\nb\"]", "contains control characters"),
    ("audiences: [a], lifetime: 5m1s", "is not a duration"),
    ("audiences: [a], lifetime: 301s", "301s is out of range: 10s to 5m"),
    ("audiences: [a], lifetime: 9s", "9s is out of range: 10s to 5m"),
    ("audiences: [a], lifetime: 0s", "0s is out of range: 10s to 5m"),
    ("audiences: [], url: 'https://a.example/t'", "tokens.url: has no effect without tokens.audiences"),
    ("audiences: [a], url: 'http://a.example/t'", "did you mean https://a.example/t"),
    ("audiences: [a], url: 'https://a.example'", "did you mean https://a.example/attest/token"),
    ("audiences: [a], url: 'https://a.example/t?x=1'", "has a user, a query or an escape"),
    ("audiences: [a], url: 'https://u@a.example/t'", "tokens.url: "),
    ("audiences: [a], url: a.example", "is not a URL that begins with https://"),
    (
      "audiences: [sallyport-upstream]",
      "tokens.audiences[0]: \"sallyport-upstream\" is the audience of identity assertions for an upstream "
        + "(identity.audience)"
    ),
    ("audiences: [a], audience: b", "tokens.audience: unknown key (did you mean tokens.audiences)"),
  ]

  @Test("A faulty value is refused with its key", arguments: faulty)
  func faults(_ yaml: String, _ fault: String) throws {
    let faults = try Workspace().faults(yaml: "tokens: { \(yaml) }")
    #expect(faults.count == 1 && faults[0].contains(fault), "\(faults)")
  }

  @Test("The audience of a route's identity assertions is refused")
  func routeAudience() throws {
    let yaml = """
      routes: [{ path: /chat, upstream: "ws://127.0.0.1:8080", audience: chat }]
      identity: { audience: all }
      tokens: { audiences: [chat, other, all] }
      """
    let faults = try Workspace().faults(yaml: yaml)
    #expect(faults.count == 2, "\(faults)")
    #expect(
      faults.contains { $0.contains("tokens.audiences[0]: \"chat\" is the audience") && $0.hasSuffix("(route /chat)") })
    #expect(faults.contains { $0.contains("tokens.audiences[2]: \"all\" is the audience") })
  }
}
