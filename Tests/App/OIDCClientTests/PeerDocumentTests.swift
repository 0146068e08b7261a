import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

/// What providers write in place of what the specifications say. Each has one meaning; its neighbours without one are
/// refused, by their name and value.
@Suite("Documents of real providers")
struct PeerDocumentTests {
  private func message(_ body: () throws(OIDCError) -> Void) -> String? {
    do throws(OIDCError) {
      try body()
      return nil
    } catch {
      return "\(error)"
    }
  }

  private func answer(_ more: String) throws(OIDCError) -> TokenResponse {
    try TokenResponse(json: Array(#"{"access_token":"a","token_type":"Bearer"\#(more)}"#.utf8))
  }

  private func device(_ members: String) throws(OIDCError) -> DeviceAuthorization {
    try DeviceAuthorization(
      json: Array(#"{"device_code":"d","user_code":"A-B"\#(members)}"#.utf8),
      at: Date(timeIntervalSince1970: 1_800_000_000))
  }

  // MARK: The token endpoint

  @Test(
    "A scope is a text or a list, and one that is neither counts for nothing",
    arguments: [
      (#","scope":"a b""#, "a b"), (#","scope":["a","b"]"#, "a b"), (#","scope":["a","","b"]"#, "a b"),
      (#","scope":"""#, nil), (#","scope":[]"#, nil), (#","scope":null"#, nil), (#","scope":5"#, nil),
      (#","scope":["a",5]"#, nil), (#","scope":{"a":1}"#, nil), ("", nil),
    ] as [(String, String?)])
  func scope(member: String, expected: String?) throws {
    #expect(try answer(member).tokens.scope == expected)
  }

  @Test func `members that nobody needs refuse nothing, whatever they are`() throws {
    let more = #","not-before-policy":[],"session_state":5,"user":{"id":[1]},"ext_expires_in":"never","a":1e999"#
    #expect(try answer(more).tokens.accessToken == "a")
    // An ID token is of no use at a provider of plain OAuth 2.0.
    #expect(try answer(#","id_token":{"a":1}"#).tokens.idToken == nil)
  }

  @Test(
    "A member that is used names itself and its value, and a secret is not shown",
    arguments: [
      (#","expires_in":"soon""#, #"expires_in is "soon", not a number"#),
      (#","expires_in":-1"#, "expires_in is -1, not a lifetime in seconds"),
      (#","expires_in":"0x10""#, #"expires_in is "0x10", not a number"#),
      (#","expires_in":[60]"#, "expires_in is a list, not a number"),
      (#","expires_in":true"#, "expires_in is true, not a number"),
      (#","refresh_token":5150"#, "refresh_token is a number, not a text"),
      (#","refresh_token":["top secret"]"#, "refresh_token is a list, not a text"),
      (#","refresh_token":"a b""#, "refresh_token has characters that are not allowed"),
    ])
  func used(member: String, expected: String) throws {
    let found = try #require(message { () throws(OIDCError) in _ = try answer(member) })
    #expect(found.contains("the token endpoint's answer: " + expected), "\(found)")
    #expect(!found.contains("5150") && !found.contains("secret"))
  }

  @Test(
    "A type that is left out is Bearer",
    arguments: [#"{"access_token":"a"}"#, #"{"access_token":"a","token_type":""}"#])
  func withoutType(json: String) throws {
    #expect(try TokenResponse(json: Array(json.utf8)).tokens.tokenType == "Bearer")
  }

  @Test(
    "A member that is missing is named",
    arguments: [
      (#"{"token_type":"Bearer"}"#, "access_token is missing"), ("[]", "not a JSON object"),
    ])
  func missing(json: String, expected: String) throws {
    let found = message { () throws(OIDCError) in _ = try TokenResponse(json: Array(json.utf8)) }
    #expect(found?.contains(expected) == true, "\(found ?? "")")
  }

  @Test(
    "A lifetime is a number or a text of one; 0 and nothing name none",
    arguments: [
      (#","expires_in":60"#, 60, true), (#","expires_in":"60""#, 60, true), (#","expires_in":"6e1""#, 60, true),
      (#","expires_in":0"#, 3600, false), (#","expires_in":"0""#, 3600, false), (#","expires_in":"""#, 3600, false),
      ("", 3600, false),
    ] as [(String, TimeInterval, Bool)])
  func lifetime(member: String, seconds: TimeInterval, isNamed: Bool) throws {
    let answer = try answer(member)
    #expect(answer.tokens.expiresIn == seconds && answer.namesLifetime == isNamed)
  }

  @Test func `a document with a million members is refused before it is read`() {
    let members = (0..<1_000_000).map { #""\#($0)":0"# }.joined(separator: ",")
    let json = Array((#"{"issuer":"https://a.example","access_token":"a","token_type":"Bearer","# + members + "}").utf8)
    #expect(throws: OIDCError.self) { try TokenResponse(json: json) }
    #expect(throws: OIDCError.self) { try ProviderMetadata(json: json, issuer: "https://a.example") }
    #expect(throws: OIDCError.self) { try DeviceAuthorization(json: json, at: .distantPast) }
    #expect(throws: OIDCError.self) { try ProviderKeys(json: json) }
    #expect(HTTPResponse(status: 400, headers: [], body: json).refusal == nil)
  }

  // MARK: The device grant

  @Test(
    "The address of a device grant has Google's name, too, and times are numbers or texts",
    arguments: [
      (#","verification_uri":"https://a.example/d","expires_in":900,"interval":7"#, 900, 7),
      (#","verification_url":"https://a.example/d","expires_in":900"#, 900, 5),
      (#","verification_url":"https://a.example/d","expires_in":"900","interval":"7""#, 900, 7),
      (#","verification_uri":"","verification_url":"https://a.example/d","expires_in":"900","interval":"""#, 900, 5),
      (
        #","verification_uri":"https://a.example/d","verification_url":"http://evil.example","expires_in":900"#, 900, 5
      ),
      (
        #","verification_uri":"https://a.example/d","verification_uri_complete":"","expires_in":900,"message":[]"#, 900,
        5
      ),
    ])
  func device(members: String, lifetime: TimeInterval, interval: Int) throws {
    let found = try device(members)
    #expect(found.verificationURI == "https://a.example/d" && found.interval == interval)
    #expect(found.completeURI == nil && found.expiresAt.timeIntervalSince1970 == 1_800_000_000 + lifetime)
  }

  @Test(
    "What a device grant uses is strict, and names itself",
    arguments: [
      (#","expires_in":900"#, "verification_uri is missing"),
      (#","verification_url":"http://a.example","expires_in":900"#, #"verification_url is "http://a.example", not"#),
      (#","verification_uri":5,"expires_in":900"#, "verification_uri is 5, not a text"),
      (#","verification_uri":"https://a.example","expires_in":"soon""#, #"expires_in is "soon", not a number"#),
      (#","verification_uri":"https://a.example","expires_in":"nan""#, #"expires_in is "nan", not a number"#),
      (
        #","verification_uri":"https://a.example","expires_in":"1e300""#,
        "expires_in is 1e+300, not a number of seconds"
      ),
      (
        #","verification_uri":"https://a.example","expires_in":900,"interval":{}"#,
        "interval is an object, not a number"
      ),
      (
        #","verification_uri":"https://a.example","verification_uri_complete":"javascript:x","expires_in":900"#,
        #"verification_uri_complete is "javascript:x""#
      ),
    ])
  func deviceFault(members: String, expected: String) throws {
    let found = try #require(message { () throws(OIDCError) in _ = try device(members) })
    #expect(found.contains("the device authorization endpoint's answer: " + expected), "\(found)")
  }

  // MARK: The discovery document

  private func metadata(_ more: String) throws -> ProviderMetadata {
    try ProviderMetadata(json: Array(Discovery.document(more).utf8), issuer: "https://login.example.com")
  }

  @Test(
    "An optional member of a discovery document that is empty is absent",
    arguments: [
      #""device_authorization_endpoint":"""#, #""end_session_endpoint":null"#, #""userinfo_endpoint":"""#,
      #""code_challenge_methods_supported":[]"#, #""code_challenge_methods_supported":"""#,
      #""code_challenge_methods_supported":[""]"#, #""dpop_signing_alg_values_supported":[]"#,
      #""id_token_signing_alg_values_supported":[]"#, #""authorization_response_iss_parameter_supported":"""#,
    ])
  func empty(member: String) throws {
    let found = try metadata("," + member)
    #expect(found == (try metadata("")) && found.allFaults.isEmpty)
    #expect(throws: Never.self) { try found.requireS256() }
    #expect(found.offersUsableSignatures)
  }

  @Test(
    "A member of another type refuses nothing until it is used",
    arguments: [
      ("revocation_endpoint", "5", "revocation_endpoint is 5, not a text"),
      ("jwks_uri", "[]", "jwks_uri is a list, not a text"),
      ("token_endpoint", "1e999", "token_endpoint is "),
      ("authorization_endpoint", #""http://evil.example""#, #"authorization_endpoint is "http://evil.example""#),
      ("code_challenge_methods_supported", "{}", "code_challenge_methods_supported is an object, not a list of texts"),
    ])
  func unused(name: String, value: String, expected: String) async throws {
    let json = #"{"issuer":"https://login.example.com","\#(name)":\#(value)}"#
    let found = try ProviderMetadata(json: Array(json.utf8), issuer: "https://login.example.com")
    let fault = try #require(found.fault(of: name))
    #expect("\(fault)".contains(expected), "\(fault)")
    #expect(found.allFaults == [fault])
    if name == "jwks_uri" { #expect(throws: fault) { try found.requiredKeysURL() } }
    if name == "code_challenge_methods_supported" { #expect(throws: fault) { try found.requireS256() } }
  }

  @Test func `a sign-in needs no endpoint of a revocation, and a revocation names the one that is unusable`()
    async throws
  {
    let document =
      #"{"issuer":"https://login.example.com","authorization_endpoint":"https://login.example.com/authorize","#
      + #""token_endpoint":"https://login.example.com/token","revocation_endpoint":"http://login.example.com/r"}"#
    let bench = Bench([.success(.json(document))])
    let client = bench.client(.discovered())
    #expect(try await client.begin(redirectURI: "x:/y").url.path() == "/authorize")
    let account = StoredAccount.sample(at: bench.clock.now)
    let error = await #expect(throws: OIDCError.self) { try await client.revoke(account) }
    #expect(error.map { "\($0)" }?.contains("revocation_endpoint is \"http://login.example.com/r\"") == true)
    #expect(bench.transport.sent.count == 1)
  }

  @Test(
    "Keys are fetched whatever a document says of endpoints that they do not need",
    arguments: [#""revocation_endpoint":"""#, #""userinfo_endpoint":5"#, #""end_session_endpoint":"http://a.example""#])
  func keys(member: String) async throws {
    let minter = Minter()
    let document =
      #"{"issuer":"https://login.example.com","jwks_uri":"https://login.example.com/keys",\#(member)}"#
    let transport = ScriptedTransport { request, _ throws(TransportError) in
      .json(request.url.path == Discovery.path ? document : minter.jwks)
    }
    let clock = ManualClock()
    let directory = ProviderDirectory(issuer: "https://login.example.com", transport: transport, now: { clock.now })
    let token = try IDToken(minter.token(at: clock.now))
    #expect(try await directory.keys(for: token).contains(minter.keyID))
  }

  @Test(
    "A report names the algorithms that are not verified, and is a problem only if there are no others",
    arguments: [
      (#"["RS256","none"]"#, ["none"], nil), (#"["HS256","ES256K"]"#, ["HS256", "ES256K"], "not_offered"),
      (#"["ES512","PS384","PS512","Ed25519","EdDSA"]"#, [], nil), (#""Ed448""#, ["Ed448"], "not_offered"),
    ] as [(String, [String], String?)])
  func algorithms(list: String, refused: [String], problem: String?) async throws {
    let minter = Minter()
    let transport = Discovery.transport(
      #","id_token_signing_alg_values_supported":"# + list, keys: { minter.jwks }
    ) { _, _ throws(TransportError) in .tokens(1) }
    let report = await Bench(transport).client(.discovered()).report()
    #expect(report.refusedAlgorithms == refused && report.problems.map(\.code) == [problem].compactMap(\.self))
  }

  // MARK: What a provider needs, and others do not

  @Test func `the parameters of an entry are in each request that begins a sign-in`() async throws {
    let parameters = ["audience": "https://api.example/?a&x=1", "prompt": "login"]
    var provider = IdentityProvider.plain(allowsPasswordGrant: true).adding(parameters: parameters)
    #expect(provider.faults.isEmpty)
    provider = provider.adding(parameters: ["prompt": "none"])
    let device = #"{"device_code":"d","user_code":"A","verification_uri":"https://a.example","expires_in":600}"#
    let bench = Bench([.success(.json(device)), .success(.tokens(1)), .success(.tokens(2)), .success(.tokens(3))])
    let client = bench.client(provider)
    let query = try await client.begin(redirectURI: "x:/y").url.query(percentEncoded: true) ?? ""
    let fields = try #require(FormEncoding.decode(query))
    #expect(fields["audience"] == "https://api.example/?a&x=1" && fields["prompt"] == "none" && fields["x"] == nil)
    let grant = try await client.beginDeviceGrant()
    _ = try await client.finish(grant)
    _ = try await client.signIn(with: Credentials(username: "ada", password: "x"))
    _ = try await client.exchange(.refreshToken("r"))
    #expect(bench.transport.forms.map { $0["audience"] != nil } == [true, false, true, false])
  }

  @Test(
    "A parameter that the client sets itself is refused, and one that cannot be sent",
    arguments: [
      ("state", "x"), ("client_id", "x"), ("redirect_uri", "x"), ("code_challenge", "x"), ("response_type", "token"),
      ("response_mode", "fragment"), ("request", "x"), ("scope", "x"), ("nonce", "x"), ("", "x"), ("a b", "x"),
      ("ä", "x"), ("prompt", "a\u{0}"), ("prompt", "a\r\nb"), (String(repeating: "a", count: 65), "x"),
      ("prompt", String(repeating: "a", count: 1025)),
    ])
  func reserved(name: String, value: String) {
    #expect(IdentityProvider.plain().adding(parameters: [name: value]).faults.map(\.field) == ["parameters"])
  }

  @Test(
    "A client assertion is for the issuer, or for the token endpoint where the entry says so",
    arguments: [
      (nil, nil, "https://login.example.com/token"), ("https://login.example.com", nil, "https://login.example.com"),
      (
        "https://login.example.com", ProviderVariations.AssertionAudience.tokenEndpoint,
        "https://login.example.com/token"
      ),
      ("https://login.example.com", .issuer, "https://login.example.com"),
    ] as [(String?, ProviderVariations.AssertionAudience?, String)])
  func assertion(issuer: String?, audience: ProviderVariations.AssertionAudience?, expected: String) {
    let provider = IdentityProvider(
      id: "work", name: "Work", tokenEndpoint: url("https://login.example.com/token"), clientID: "app", scopes: [],
      type: .oauth2, issuer: issuer, variations: ProviderVariations(assertionAudience: audience))
    #expect(provider.audienceOfAssertions == expected && provider.faults.isEmpty)
  }

  @Test func `an issuer that there is not can be the audience of nothing`() {
    let provider = IdentityProvider(
      id: "work", name: "Work", tokenEndpoint: url("https://login.example.com/token"), clientID: "app", scopes: [],
      type: .oauth2, variations: ProviderVariations(assertionAudience: .issuer))
    #expect(provider.faults.map(\.field) == ["assertion_audience"])
  }

  @Test(
    "Audiences that the entry trusts may stand next to the client, and are nothing without it",
    arguments: [
      (["app", "project", "sibling"], "app", nil), (["app"], nil, nil), (["app"], "app", nil),
      (["app", "project"], nil, "wrong_authorized_party"), (["app", "project"], "project", "wrong_authorized_party"),
      (["project", "sibling"], "app", "wrong_audience"), (["app", "project", "other"], "app", "wrong_audience"),
    ] as [([String], String?, String?)])
  func audiences(audiences: [String], party: String?, expected: String?) async throws {
    let minter = Minter()
    let clock = ManualClock()
    let transport = Discovery.transport(keys: { minter.jwks }) { _, _ throws(TransportError) in
      .tokens(1, idToken: try? minter.token(at: clock.now, audiences: audiences, party: party))
    }
    let provider = IdentityProvider(
      id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", allowsPasswordGrant: true,
      dpop: .off, variations: ProviderVariations(trustedAudiences: ["project", "sibling"]))
    let client = Bench(transport).client(provider)
    var code: String?
    do throws(OIDCError) { _ = try await client.signIn(with: Credentials(username: "ada", password: "x")) } catch {
      code = error.code
    }
    #expect(code == expected)
  }

  @Test(
    "The clocks may differ by five minutes, or by what the entry says",
    arguments: [
      (nil, 300, nil), (nil, 301, "wrong_issue_time"), (nil, 120, nil), (0, 1, "wrong_issue_time"), (900, 900, nil),
    ] as [(TimeInterval?, TimeInterval, String?)])
  func clocks(skew: TimeInterval?, ahead: TimeInterval, expected: String?) async throws {
    let minter = Minter()
    let clock = ManualClock()
    let transport = Discovery.transport(keys: { minter.jwks }) { _, _ throws(TransportError) in
      .tokens(1, idToken: try? minter.token(at: clock.now.addingTimeInterval(ahead)))
    }
    var variations = ProviderVariations()
    if let skew { variations.clockSkew = skew }
    let provider = IdentityProvider(
      id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", allowsPasswordGrant: true,
      dpop: .off, variations: variations)
    #expect(provider.faults.isEmpty)
    var code: String?
    do throws(OIDCError) {
      _ = try await Bench(transport).client(provider).signIn(with: Credentials(username: "ada", password: "x"))
    } catch {
      code = error.code
    }
    #expect(code == expected)
  }
}
