import bearer
import Foundation
import OIDCClient
import TestSupport
import Testing

@Suite("bearer.yaml")
struct BearerSettingsTests {
  private static let least = """
    providers:
      work: { issuer: "https://login.example.com", client_id: cli }

    """

  @Test func `a provider with only the required keys has every default`() throws {
    let settings = try NamedFiles().read(Self.least)
    let provider = try #require(settings.standard)
    #expect(settings.providers == [provider] && settings.provider("work") == provider)
    #expect(provider.id == "work" && provider.name == "work" && provider.type == .openIDConnect)
    #expect(provider.issuer == "https://login.example.com" && provider.needsDiscovery)
    #expect(provider.clientID == "cli" && provider.clientSecret == nil && provider.authentication == .none)
    #expect(provider.scopes == ["openid"] && provider.endpoints == FurtherEndpoints())
    #expect(!provider.allowsPasswordGrant && provider.dpop == .automatic && provider.trust == ConnectionTrust())
    #expect(provider.fallbacks == [] && provider.variations == ProviderVariations())
  }

  @Test(
    "What a provider needs and others do not arrives in it, and what it cannot be has its fault",
    arguments: [
      ("trusted_audiences: [\"383168317235462148\", sibling]", nil),
      ("trusted_audiences: [a, '']", "trusted_audiences[1]"),
      ("trusted_audiences: a", "trusted_audiences"), ("clock_skew: 90s", nil), ("clock_skew: 15m", nil),
      ("clock_skew: 0s", nil), ("clock_skew: 16m", "clock_skew"), ("clock_skew: 901s", "clock_skew"),
      ("clock_skew: '300'", "clock_skew"), ("clock_skew: -5s", "clock_skew"), ("clock_skew: +5s", "clock_skew"),
      ("clock_skew: 99999999999999999999m", "clock_skew"), ("clock_skew: ''", "clock_skew"),
      ("parameters: { audience: \"https://api.example\", prompt: login }", nil), ("parameters: {}", nil),
      ("parameters: { state: x }", "parameters.state"), ("parameters: { prompt: [a] }", "parameters.prompt"),
      ("parameters: login", "parameters"), ("parameters: { prompt: a, prompt: b }", "parameters.prompt"),
      ("assertion_audience: token_endpoint", nil), ("assertion_audience: issuer", nil),
      ("assertion_audience: https://x.example", "assertion_audience"),
      ("token_parameters: { resource: \"https://api.example\" }", nil),
      ("token_parameters: { subject_token: x }", "token_parameters.subject_token"),
      ("token_parameters: { client_secret: x }", "token_parameters.client_secret"),
      ("token_parameters: x", "token_parameters"),
      ("discovery_url: https://other.example/meta?v=2", nil), ("discovery_url: http://other.example", "discovery_url"),
      ("discovery_url: /meta", "discovery_url"), ("private_key_algorithm: PS256", "private_key_algorithm"),
      ("private_key_algorithm: HS256", "private_key_algorithm"), ("par: required", nil), ("par: off", "par"),
      ("par: auto", nil),
      ("pushed_authorization_request_endpoint: https://a.example", "pushed_authorization_request_endpoint"),
    ] as [(String, String?)])
  func variations(line: String, fault: String?) throws {
    let yaml = """
      providers:
        work:
          issuer: https://login.example.com
          client_id: cli
          \(line)

      """
    guard let fault else {
      let found = try #require(try NamedFiles().read(yaml).standard).variations
      let isUsual = line == "parameters: {}" || line == "par: auto"
      #expect((found == ProviderVariations()) == isUsual)
      if line.hasPrefix("trusted") { #expect(found.trustedAudiences == ["383168317235462148", "sibling"]) }
      if line.hasPrefix("clock") { #expect([90, 900, 0].contains(found.clockSkew)) }
      if line.contains("prompt") {
        #expect(found.parameters == ["audience": "https://api.example", "prompt": "login"])
      }
      if line.hasPrefix("token") { #expect(found.tokenParameters == ["resource": "https://api.example"]) }
      if line.hasPrefix("discovery") {
        #expect(found.discoveryURL?.absoluteString == "https://other.example/meta?v=2")
      }
      if line.hasPrefix("assertion") { #expect(line.hasSuffix(found.assertionAudience?.rawValue ?? "-")) }
      return
    }
    let faults = try NamedFiles().faults(yaml)
    #expect(faults.count == 1 && faults.first?.contains("providers.work.\(fault):") == true, "\(faults)")
  }

  @Test(
    "The hosts that Git gets a token for are hosts, each of one provider",
    arguments: [
      ("git_hosts: [git.example.com, 'a.example:8443']", nil), ("git_hosts: []", nil),
      ("git_hosts: ['https://git.example.com']", "git_hosts[0]"), ("git_hosts: [Git.example.com]", "git_hosts[0]"),
      ("git_hosts: [a.example, '*.example']", "git_hosts[1]"), ("git_hosts: ['a.example:0']", "git_hosts[0]"),
      ("git_hosts: ['a.example:65536']", "git_hosts[0]"), ("git_hosts: ['a.example:x']", "git_hosts[0]"),
      ("git_hosts: [':443']", "git_hosts[0]"), ("git_hosts: ['']", "git_hosts[0]"),
      ("git_hosts: [a.example, a.example]", "git_hosts[1]"), ("git_hosts: a.example", "git_hosts"),
      ("git_hosts: [a.example]\ngit_username: x-token", nil), ("git_username: x-token", "git_username"),
      ("git_hosts: [a.example]\ngit_username: 'a b'", "git_username"), ("account: ada+x@example.com", nil),
      ("account: a/b", "account"), ("account: ''", "account"), ("account: .a", "account"),
    ] as [(String, String?)])
  func gitHosts(lines: String, fault: String?) throws {
    let faults = try NamedFiles().faults(provider: "issuer: https://a.example\nclient_id: c\n" + lines)
    #expect(faults.count == (fault == nil ? 0 : 1), "\(faults)")
    if let fault { #expect(faults.first?.contains("\(fault): ") == true, "\(faults)") }
  }

  @Test func `a host belongs to one provider`() throws {
    let text = """
      providers:
        a: { issuer: "https://a.example", client_id: c, git_hosts: [git.example.com] }
        b: { issuer: "https://b.example", client_id: c, git_hosts: [x.example.com, git.example.com], git_username: u }

      """
    #expect(try NamedFiles().faults(text) == ["3:78: providers.b.git_hosts[1]: is a host of a, too"])
    let use = try NamedFiles().read(text.replacing(", git.example.com]", with: "]")).use(of: "b")
    #expect(use == ProviderUse(gitHosts: ["x.example.com"], gitUsername: "u"))
  }

  @Test func `every key of OpenID Connect arrives in the provider`() async throws {
    let files = NamedFiles().with("secret", "s3cret\n").with("ca.pem", try await OpenSSL.certificate())
    let pin = [UInt8](repeating: 7, count: 32)
    let provider = try #require(
      try files.read(
        """
        version: 1
        default: work
        providers:
          work:
            issuer: https://login.example.com/realms/x
            name: Example Inc.
            type: openid_connect
            client_id: cli
            client_secret_file: secret
            authentication: post
            scopes: [openid, offline_access]
            redirect_uri: http://127.0.0.1:8912/callback
            password_grant: true
            dpop: required
            pins: ["sha256/\(Data(pin).base64EncodedString())"]
            ca_file: ca.pem
            fallbacks: [backup]
          backup: { issuer: "http://localhost:8080", client_id: cli, dpop: off, password_grant: false }
        """
      ).standard)
    #expect(provider.issuer == "https://login.example.com/realms/x" && provider.name == "Example Inc.")
    #expect(provider.clientSecret == "s3cret" && provider.authentication == .post)
    #expect(provider.scopes == ["openid", "offline_access"])
    #expect(provider.endpoints.redirectURI?.absoluteString == "http://127.0.0.1:8912/callback")
    #expect(provider.allowsPasswordGrant && provider.dpop == .required)
    #expect(provider.trust.authorityFile?.hasSuffix("/ca.pem") == true && provider.trust.pins == [pin])
    #expect(provider.fallbacks == ["backup"])
  }

  @Test func `every key of OAuth 2.0 arrives in the provider`() async throws {
    let pem = try await OpenSSL.privateKey()
    let provider = try #require(
      try NamedFiles().with("key.pem", pem).read(
        """
        providers:
          forge:
            type: oauth2
            issuer: https://f.example
            client_id: cli
            authentication: private_key_jwt
            private_key_file: ./key.pem
            private_key_id: k1
            token_endpoint: https://f.example/token
            authorization_endpoint: https://f.example/authorize
            device_authorization_endpoint: https://f.example/device
            revocation_endpoint: https://f.example/revoke
            end_session_endpoint: https://f.example/end
            userinfo_endpoint: https://f.example/user?x=1
        """
      ).standard)
    #expect(provider.type == .oauth2 && provider.issuer == "https://f.example" && !provider.needsDiscovery)
    #expect(provider.authentication == .privateKeyJWT(pem: pem, keyID: "k1") && provider.scopes == [])
    let endpoints = provider.endpoints
    #expect(
      [
        provider.tokenEndpoint, provider.authorizationEndpoint, endpoints.deviceAuthorization, endpoints.revocation,
        endpoints.endSession, endpoints.userinfo,
      ].map { $0?.absoluteString }
        == ["token", "authorize", "device", "revoke", "end", "user?x=1"]
        .map { "https://f.example/\($0)" })
  }

  @Test func `a secret means basic authentication`() throws {
    let files = NamedFiles().with("secret", "s3cret")
    #expect(try files.faults(provider: "issuer: https://a.example\nclient_id: c\nclient_secret_file: secret") == [])
    let settings = try files.read(
      "providers: { w: { issuer: 'https://a.example', client_id: c, client_secret_file: secret } }")
    #expect(settings.standard?.authentication == .basic && settings.standard?.clientSecret == "s3cret")
  }

  @Test func `an identifier may have dots, and an argument and the value of a parameter may be empty`() throws {
    let settings = try NamedFiles().with("k", "").read(
      """
      providers:
        git.example:
          issuer: https://a.example
          client_id: c
          authentication: attestation
          attestation_command: [attester, -v, -v, ""]
          attestation_key_file: k
          parameters: { prompt: "" }
      """)
    #expect(settings.use(of: "git.example").attestations?.command == ["attester", "-v", "-v", ""])
    #expect(settings.standard?.id == "git.example" && settings.standard?.variations.parameters == ["prompt": ""])
  }

  @Test func `providers keep the order of the file, and none of several is standard by itself`() throws {
    let two = """
      providers:
        b: { issuer: "https://b.example", client_id: c }
        a: { issuer: "https://a.example", client_id: c }

      """
    let settings = try NamedFiles().read(two)
    #expect(settings.providers.map(\.id) == ["b", "a"] && settings.standard == nil)
    #expect(try NamedFiles().read(two + "default: a\n").standard?.id == "a")
  }

  @Test func `all faults are reported at once, in the order of the file`() throws {
    let faults = try NamedFiles().faults(
      """
      version: 2
      defualt: work
      default: wrok
      providers:
        work:
          issuer: http://login.example.com/#x
          client_id: ""
          client_secret_file: missing
          scopes: [email, "a b"]
          dpop: on
          pins: [sha256/AAAA]
          fallbacks: [bakcup, work]
          token_endpoint: https://login.example.com/token
          color: red
        backup:
          type: oauth2
          client_id: cli
          redirect_uri: http://app.example.com/
        "a b": { issuer: /x, client_id: c }
      """)
    #expect(
      faults == [
        "1:10: version: 2 is out of range: 1 to 1",
        "2:1: defualt: unknown key (did you mean default)",
        "3:10: default: names no provider of this file (did you mean work)",
        "6:13: providers.work.issuer: must be https, or http on loopback: codes and tokens are sent there",
        "6:13: providers.work.issuer: must not contain a fragment",
        "7:16: providers.work.client_id: value is empty",
        "8:25: providers.work.client_secret_file: cannot read /etc/b/missing: No such file or directory (ENOENT)",
        "9:5: providers.work.scopes: must contain openid with OpenID Connect",
        "9:21: providers.work.scopes[1]: must be printable ASCII without spaces, quotation marks and backslashes",
        "10:11: providers.work.dpop: \"on\" is not one of auto, off, required",
        "11:12: providers.work.pins[0]: must be sha256/ and the base64 of 32 bytes, 44 characters",
        "12:17: providers.work.fallbacks[0]: names no provider of this file (did you mean backup)",
        "12:25: providers.work.fallbacks[1]: must not be the provider itself",
        "13:21: providers.work.token_endpoint: is found by discovery with openid_connect; only oauth2 sets it",
        "14:5: providers.work.color: unknown key",
        "15:3: providers.backup.token_endpoint: is required with oauth2",
        "18:19: providers.backup.redirect_uri: must be https, or http on loopback: codes and tokens are sent there",
        "19:3: providers.a b: must be 1 to 64 letters, digits, hyphens, underscores and periods, a letter or digit first",
        "19:20: providers.a b.issuer: must be an absolute URL, such as https://login.example.com",
      ])
  }

  @Test(
    arguments: [
      ("", ["1:1: providers: must contain a provider"]),
      ("version: 1\n", ["1:1: providers: must contain a provider"]),
      ("providers:\n", ["1:1: providers: must contain a provider"]),
      ("providers: {}\n", ["1:1: providers: must contain a provider"]),
      ("providers: work\n", ["1:12: providers: expected a section with keys"]),
      (
        "providers: { work: }\n",
        ["1:14: providers.work.client_id: missing", "1:14: providers.work.issuer: is required with openid_connect"]
      ),
      ("providers: { work: [a] }\n", ["1:20: providers.work: expected a section with keys"]),
      (
        "- a\n",
        [
          "1:1: the file contains no keys; expected a form such as "
            + "providers: { work: { issuer: \"https://login.example.com\", client_id: cli } }"
        ]
      ),
      ("a: [\n", ["2:1: not YAML: while parsing a flow node, did not find expected node content"]),
    ])
  func `a file of another form is refused`(yaml: String, faults: [String]) throws {
    #expect(try NamedFiles().faults(yaml) == faults)
  }

  @Test func `a key or provider that is set twice is refused`() throws {
    #expect(
      try NamedFiles().faults(Self.least + "version: 1\nversion: 1\n") == ["4:1: version: set twice, first in line 3"])
    #expect(
      try NamedFiles().faults(provider: "issuer: https://a.example\nclient_id: c\nclient_id: d")
        == ["5:5: client_id: set twice, first in line 4"])
    #expect(
      try NamedFiles().faults(Self.least + "  work: { issuer: \"https://b.example\", client_id: cli }\n")
        == ["3:3: providers.work: set twice, first in line 2"])
  }

  @Test func `a value of another form is refused`() throws {
    #expect(
      try NamedFiles().faults(
        provider:
          "issuer: [x]\nclient_id:\nname: { a: b }\nscopes: openid\npins: [[a]]\npassword_grant: yes\n1: 2\n[a]: b"
      ) == [
        "3:13: issuer: expected one value, not a list", "4:15: client_id: value is empty",
        "5:11: name: expected one value, not a section", "6:13: scopes: expected a list, for example [a, b]",
        "7:12: pins[0]: expected one value, not a list",
        "8:21: password_grant: \"yes\" is not true or false (did you mean true)", "9:5: 1: unknown key",
        "10:5: providers.work: not a valid key: expected a word",
      ])
  }

  @Test func `required keys are named`() throws {
    #expect(
      try NamedFiles().faults(provider: "name: Work")
        == ["2:3: client_id: missing", "2:3: issuer: is required with openid_connect"])
    #expect(
      try NamedFiles().faults(provider: "type: oauth2\nclient_id: c") == [
        "2:3: token_endpoint: is required with oauth2"
      ])
  }

  @Test func `an unknown type is the only fault of what depends on it`() throws {
    #expect(
      try NamedFiles().faults(provider: "type: oauth\nclient_id: c\nscopes: [a]")
        == ["3:11: type: \"oauth\" is not one of openid_connect, oauth2 (did you mean oauth2)"])
  }

  @Test func `a chain of fallbacks that leads back is refused once`() throws {
    func file(_ fallbacks: [String: String]) -> String {
      "providers:\n"
        + ["a", "b", "c", "d"].map { id in
          "  \(id): { issuer: \"https://\(id).example\", client_id: c, fallbacks: [\(fallbacks[id] ?? "")] }\n"
        }.joined()
    }
    #expect(try NamedFiles().faults(file(["a": "b, c", "b": "c", "d": "a"])) == [])
    #expect(
      try NamedFiles().faults(file(["a": "b", "b": "c", "c": "d, b"]))
        == ["4:66: providers.c.fallbacks[1]: leads back: b → c → b"])
  }

  @Test func `a file of more than 1 MiB is refused`() throws {
    let comment = String(repeating: "#", count: (1 << 20) - Self.least.utf8.count)
    #expect(try NamedFiles().faults(Self.least + comment) == [])
    #expect(try NamedFiles().faults(Self.least + comment + "#") == ["1:1: cannot read the file: larger than 1MiB"])
  }

  @Test func `faults stay on one line`() throws {
    let faults = try NamedFiles().faults(
      "\"a\\nb\\eC\": 1\nproviders: { w: { issuer: 'https://a.example', client_id: c } }\n")
    #expect(faults == ["1:1: a\u{FFFD}b\u{FFFD}C: unknown key"])
  }

  @Test func `the file is found by the environment`() {
    let all = ["BEARER_CONFIG": "b.yaml", "XDG_CONFIG_HOME": "/x", "HOME": "/h"]
    func path(without names: Set<String>) -> String? {
      BearerSettings.defaultPath(environment: all.filter { !names.contains($0.key) })
    }
    #expect(path(without: []) == "b.yaml")
    #expect(path(without: ["BEARER_CONFIG"]) == "/x/sallyport/bearer.yaml")
    #expect(path(without: ["BEARER_CONFIG", "XDG_CONFIG_HOME"]) == "/h/.config/sallyport/bearer.yaml")
    #expect(path(without: ["BEARER_CONFIG", "XDG_CONFIG_HOME", "HOME"]) == nil)
    #expect(
      BearerSettings.defaultPath(environment: ["BEARER_CONFIG": "", "XDG_CONFIG_HOME": "x", "HOME": "/h"])
        == "/h/.config/sallyport/bearer.yaml")
  }
}
