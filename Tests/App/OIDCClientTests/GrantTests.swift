import ByteCoding
import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

/// The code of the error that `body` throws; "done" without one.
private func outcome(_ body: () async throws(OIDCError) -> Void) async -> String {
  do throws(OIDCError) {
    try await body()
    return "done"
  } catch {
    return error.code
  }
}

@Suite("A sign-in in the browser")
struct AuthorizationTests {
  private func request(
    issuer: String? = "https://login.example.com", namesIssuer: Bool = true
  ) -> AuthorizationRequest {
    AuthorizationRequest(
      url: url("https://login.example.com/authorize"), redirectURI: "http://127.0.0.1:1/cb", state: "the state",
      nonce: nil, pkce: PKCE(verifier: "v"), issuer: issuer, namesIssuer: namesIssuer, provider: .plain())
  }

  private static let iss = "&iss=https%3A%2F%2Flogin.example.com"

  private static let redirects: [(query: String?, expected: String)] = [
    ("state=the+state&code=c1" + iss, "c1"), ("state=the%20state&code=c%2B1" + iss, "c+1"),
    ("c%6Fde=c1&st%61te=the%20state" + iss, "c1"), ("state=the+state&code=c1&x=1&y" + iss, "c1"),
    // Another state, or none.
    ("state=other&code=c1" + iss, "wrong_state"), ("code=c1" + iss, "wrong_state"),
    ("state=&code=c1" + iss, "wrong_state"),
    ("state=the+statE&code=c1" + iss, "wrong_state"), ("state=the+state%00&code=c1" + iss, "wrong_state"),
    ("state=the+state+&code=c1" + iss, "wrong_state"), ("state=other&error=access_denied" + iss, "wrong_state"),
    // Another issuer, or none although the provider promises one.
    ("state=the+state&code=c1", "wrong_redirect_issuer"), ("state=the+state&code=c1&iss=", "wrong_redirect_issuer"),
    ("state=the+state&code=c1&iss=https://evil.example", "wrong_redirect_issuer"),
    ("state=the+state&code=c1" + iss + "%2F", "wrong_redirect_issuer"),
    ("state=the+state&error=access_denied&iss=https://evil.example", "wrong_redirect_issuer"),
    // Twice, also under another spelling.
    ("state=the+state&code=c1&code=c2" + iss, "answer_malformed"),
    ("state=the+state&code=c1&c%6Fde=c1" + iss, "answer_malformed"),
    ("state=the+state&state=the+state&code=c1" + iss, "answer_malformed"),
    ("state=the+state&code=c1" + iss + iss, "answer_malformed"),
    // More fields than any provider sends.
    ("state=the+state&code=c1" + iss + (0..<62).map { "&x\($0)" }.joined(), "answer_malformed"),
    ("state=the+state&code=c1" + iss + (0..<61).map { "&x\($0)" }.joined(), "c1"),
    // Names that are equal as texts, and not as bytes, are two.
    ("state=the+state&code=c1&%C3%A9=1&e%CC%81=1" + iss, "c1"),
    // Fields that no rule reads.
    ("state=the+state&code=c1&display_name=J%FCrgen" + iss, "c1"), ("state=the+state&code=c1&%FF=1" + iss, "c1"),
    ("state=the+state&error=access_denied&error_description=refus%E9" + iss, "access_denied"),
    // No code.
    ("state=the+state" + iss, "answer_malformed"), ("state=the+state&code=" + iss, "answer_malformed"),
    (nil, "answer_malformed"),
    ("", "wrong_state"), ("state=the+state&code=%FF" + iss, "answer_malformed"),
    // Foundation encodes every percent sign again if one of them begins no escape.
    ("state=the+state&code=%2" + iss, "wrong_redirect_issuer"),
    // An error of the provider.
    ("state=the+state&error=access_denied" + iss, "access_denied"),
    ("state=the+state&error=access_denied&code=c1" + iss, "access_denied"),
    // A space is a character of a code, a quotation mark and a backslash are none (RFC 6749, appendix A.7).
    ("state=the+state&error=access+denied" + iss, "access denied"),
    ("state=the+state&error=access%20denied" + iss, "access denied"),
    ("state=the+state&error=+" + iss, "answer_malformed"), ("state=the+state&error=a%22b" + iss, "answer_malformed"),
    ("state=the+state&error=a%5Cb" + iss, "answer_malformed"), ("state=other&error=access+denied" + iss, "wrong_state"),
    ("state=the+state&error=" + iss, "answer_malformed"), ("state=the+state&error=a%0Ab" + iss, "answer_malformed"),
    ("state=the+state&error=" + String(repeating: "x", count: 65) + iss, "answer_malformed"),
  ]

  @Test("C-011 A redirect is accepted with state, issuer and code, each once", arguments: redirects)
  func redirect(query: String?, expected: String) {
    // An address that cannot be a URL at all does not get here.
    guard let redirect = URL(string: "http://127.0.0.1:1/cb" + (query.map { "?" + $0 } ?? "")) else { return }
    var found = ""
    do throws(OIDCError) { found = try request().code(in: redirect) } catch { found = error.code }
    #expect(found == expected)
    // The state is compared before everything else, as a port does that waits for the answer.
    let isAnswer = (query ?? "").contains(/st(a|%61)te=the(\+|%20)state(&|$)/)
    #expect(request().isAnswered(by: redirect) == isAnswer)
  }

  @Test("A provider that does not promise an issuer may leave it out, but not name another")
  func optionalIssuer() throws {
    let request = request(namesIssuer: false)
    #expect(try request.code(in: url("http://127.0.0.1/?state=the+state&code=c")) == "c")
    #expect(throws: OIDCError.redirectIssuer("https://evil.example")) {
      try request.code(in: url("http://127.0.0.1/?state=the+state&code=c&iss=https://evil.example"))
    }
    #expect(try self.request(issuer: nil).code(in: url("http://127.0.0.1/?state=the+state&code=c&iss=x")) == "c")
  }

  @Test("The text of an error is bounded")
  func explanation() {
    let text = String(repeating: "x", count: 10_000)
    let refusal = OIDCError.refused(ProviderRefusal(error: "e", explanation: String(text.prefix(300))))
    #expect(throws: refusal) {
      try request(issuer: nil).code(in: url("http://127.0.0.1/?state=the+state&error=e&error_description=" + text))
    }
  }

  @Test("C-011 The address has what the provider needs, and keeps the query of its endpoint")
  func address() async throws {
    let transport = Discovery.transport(
      #","code_challenge_methods_supported":["plain","S256"],"authorization_response_iss_parameter_supported":true"#,
      keys: { "" }
    ) { _, _ throws(TransportError) in .tokens(1) }
    let request = try await Bench(transport).client(.discovered()).begin(redirectURI: "http://127.0.0.1:1/a?b&c=ä")
    let fields = try #require(FormEncoding.decode(request.url.query(percentEncoded: true) ?? ""))
    #expect(
      fields == [
        "response_type": "code", "client_id": "app", "redirect_uri": "http://127.0.0.1:1/a?b&c=ä", "scope": "openid",
        "state": request.state, "nonce": try #require(request.nonce), "code_challenge": request.pkce.challenge,
        "code_challenge_method": "S256",
      ])
    #expect(request.namesIssuer && request.state.utf8.count == 43 && request.state != request.nonce)
    #expect(!request.url.absoluteString.contains(request.pkce.verifier))
    let plain = try await Bench([]).client(.plain()).begin(redirectURI: "x:/y")
    #expect(plain.url.query(percentEncoded: true)?.hasPrefix("tenant=a%20b&response_type=code&") == true)
    #expect(plain.nonce == nil)
  }

  @Test("A provider without S256 is not signed in with")
  func methods() async {
    let more = #","code_challenge_methods_supported":["plain"]"#
    let transport = Discovery.transport(more, keys: { "" }) { _, _ throws(TransportError) in .tokens(1) }
    let client = Bench(transport).client(.discovered())
    #expect(await outcome { () throws(OIDCError) in _ = try await client.begin(redirectURI: "x:/y") } == "not_offered")
  }

  @Test(
    "C-011, C-016 The code is exchanged once, and the ID token must be that of this sign-in",
    arguments: ["nonce", "other", "none", "missing"])
  func finish(kind: String) async throws {
    let minter = Minter()
    let nonce = Watched("")
    let clock = ManualClock()
    let transport = Discovery.transport(keys: { minter.jwks }) { _, _ throws(TransportError) in
      let sent: String? = kind == "nonce" ? nonce.value : kind == "none" ? nil : "other"
      return .tokens(1, idToken: kind == "missing" ? nil : try? minter.token(at: clock.now, nonce: sent))
    }
    let client = Bench(transport).client(.discovered())
    let request = try await client.begin(redirectURI: "http://127.0.0.1:1/cb")
    nonce.update { $0 = request.nonce ?? "" }
    let redirect = url("http://127.0.0.1:1/cb?code=c1&state=\(request.state)")
    let expected = ["nonce": "done", "missing": "answer_malformed"][kind] ?? "wrong_nonce"
    #expect(await outcome { () throws(OIDCError) in _ = try await client.finish(redirect, of: request) } == expected)
    #expect(
      transport.forms(to: "/token") == [
        [
          "grant_type": "authorization_code", "code": "c1", "redirect_uri": "http://127.0.0.1:1/cb",
          "code_verifier": request.pkce.verifier, "client_id": "app",
        ]
      ])
  }
}

@Suite("The token endpoint", .timeLimit(.minutes(2)))
struct TokenEndpointTests {
  private static let hostile = "a:b c+d%&=ä\u{1F511}\"\\"

  @Test("C-020 Basic authentication encodes both parts, and no secret is in the form")
  func basic() async throws {
    let bench = Bench([.success(.tokens(1))])
    let provider = IdentityProvider.plain(clientID: Self.hostile, secret: Self.hostile)
    _ = try await TokenEndpoint(provider: provider, dependencies: bench.dependencies).redeem(.refreshToken("r"))
    let field = try #require(bench.transport.sent[0].value(of: "Authorization"))
    let pair = String(decoding: try #require(Base64.decode(field.dropFirst("Basic ".count))), as: UTF8.self)
    let encoded = "a%3Ab%20c%2Bd%25%26%3D%C3%A4%F0%9F%94%91%22%5C"
    #expect(pair == "\(encoded):\(encoded)")
    #expect(bench.transport.forms[0] == ["grant_type": "refresh_token", "refresh_token": "r"])
  }

  @Test("C-020 Post authentication sends the secret in the form, and no authentication sends the identifier alone")
  func post() async throws {
    let bench = Bench([.success(.tokens(1)), .success(.tokens(2))])
    for provider in [IdentityProvider.plain(secret: Self.hostile, authentication: .post), .plain()] {
      _ = try await TokenEndpoint(provider: provider, dependencies: bench.dependencies).redeem(.refreshToken("r"))
    }
    #expect(bench.transport.forms[0]["client_secret"] == Self.hostile && bench.transport.forms[0]["client_id"] == "app")
    #expect(bench.transport.forms[1] == ["grant_type": "refresh_token", "refresh_token": "r", "client_id": "app"])
    #expect(bench.transport.sent.allSatisfy { $0.value(of: "Authorization") == nil })
  }

  private static func grants() -> [(TokenRequest.Grant, [String: String])] {
    let credentials = Credentials(username: "ada", password: hostile)
    return [
      (
        .authorizationCode("c", redirectURI: "x:/y", verifier: "v"),
        ["grant_type": "authorization_code", "code": "c", "redirect_uri": "x:/y", "code_verifier": "v"]
      ),
      (.refreshToken("r"), ["grant_type": "refresh_token", "refresh_token": "r"]),
      (
        .password(credentials, scopes: ["a", "b"]),
        ["grant_type": "password", "username": "ada", "password": hostile, "scope": "a b"]
      ),
      (.password(credentials, scopes: []), ["grant_type": "password", "username": "ada", "password": hostile]),
      (.deviceCode("d"), ["grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "d"]),
    ]
  }

  @Test("C-010 Each grant has the fields of its specification, and no others", arguments: 0..<5)
  func fields(index: Int) async throws {
    let (grant, expected) = Self.grants()[index]
    let bench = Bench([.success(.tokens(1))])
    _ = try await TokenEndpoint(provider: .plain(), dependencies: bench.dependencies).redeem(grant)
    #expect(bench.transport.forms == [expected.merging(["client_id": "app"]) { $1 }])
    #expect(bench.transport.sent[0].url.query() == nil && bench.transport.sent[0].method == .post)
  }

  // MARK: Signed objects

  private struct Judged: Decodable {
    struct Claims: Decodable {
      let iss: String?, sub: String?, aud: String?, jti: String?, htm: String?, htu: String?, ath: String?,
        nonce: String?
      let iat: Int?, exp: Int?
    }

    let algorithm: String, type: String?, keyID: String?, thumbprint: String?
    let claims: Claims
  }

  private func judge(_ items: [[String: String]]) async throws -> [Judged] {
    let run = try await ChildProcess.run(
      "/usr/bin/python3", [ProjectFile.path("Tests/App/Programs/signed_objects.py")],
      input: Array(try JSONEncoder().encode(items)))
    try #require(run.exit == .code(0), "\(run.errors)")
    return try JSONDecoder().decode([Judged].self, from: Data(run.output.joined().utf8))
  }

  @Test("C-020 An assertion of private_key_jwt is one that PyJWT accepts, and is used once")
  func assertion() async throws {
    for (command, algorithm, chosen) in [
      (["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "ES256", nil),
      (["genrsa", "2048"], "RS256", nil), (["genrsa", "2048"], "PS256", .ps256),
    ] as [([String], String, SignatureAlgorithm?)] {
      let pem = try await ChildProcess.run(try Places.tool("openssl"), command).output.joined(separator: "\n")
      let bench = Bench([.success(.tokens(1)), .success(.tokens(2))])
      let provider = IdentityProvider.plain(
        authentication: .privateKeyJWT(pem: pem, keyID: "k1"),
        variations: ProviderVariations(assertionAlgorithm: chosen))
      #expect(provider.faults == [])
      let endpoint = TokenEndpoint(provider: provider, dependencies: bench.dependencies)
      for _ in 0..<2 { _ = try await endpoint.redeem(.refreshToken("r")) }
      let tokens = bench.transport.forms.compactMap { $0["client_assertion"] }
      let judged = try await judge(tokens.map { ["token": $0, "key": pem] })
      try #require(judged.count == 2)
      for item in judged {
        #expect(item.algorithm == algorithm && item.keyID == "k1")
        #expect(
          item.claims.iss == "app" && item.claims.sub == "app" && item.claims.aud == "https://login.example.com/token")
        #expect(item.claims.iat == 1_800_000_000 && item.claims.exp == 1_800_000_120)
      }
      #expect(Set(judged.map(\.claims.jti)).count == 2)
      #expect(bench.transport.forms[0]["client_assertion_type"] == ClientAssertion.type)
      #expect(bench.transport.forms[0]["client_secret"] == nil)
    }
  }

  @Test(
    "A key that cannot be read stops before anything is sent",
    arguments: ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"])
  func badKey(pem: String) async {
    let bench = Bench([.success(.tokens(1))])
    let provider = IdentityProvider.plain(authentication: .privateKeyJWT(pem: pem, keyID: nil))
    let endpoint = TokenEndpoint(provider: provider, dependencies: bench.dependencies)
    #expect(
      await outcome { () throws(OIDCError) in _ = try await endpoint.redeem(.refreshToken("r")) }
        == "client_key_unusable")
    #expect(bench.transport.sent.isEmpty)
  }

  @Test("A proof is one that PyJWT accepts, bound to method, address, token and nonce")
  func proofs() async throws {
    let key = DPoPKey()
    let bench = Bench([
      .success(.refusal("use_dpop_nonce", status: 400, [HTTPField("dpop-nonce", "n-1")])),
      .success(.tokens(1, type: "DPoP")),
    ])
    let endpoint = TokenEndpoint(provider: .plain(), dependencies: bench.dependencies)
    _ = try await endpoint.redeem(.refreshToken("r"), boundTo: key)
    let own = try key.proof(
      method: "GET", url: url("https://u:p@api.example.com/a%20b?c=d#e"), accessToken: "access token", jti: "j",
      now: bench.clock.now)
    let sent = bench.transport.sent.compactMap { $0.value(of: "DPoP") }
    let judged = try await judge((sent + [own]).map { ["token": $0] })
    try #require(judged.count == 3)
    #expect(judged.allSatisfy { $0.thumbprint == key.thumbprint && $0.type == "dpop+jwt" && $0.algorithm == "ES256" })
    #expect(judged.map(\.claims.nonce) == [nil, "n-1", nil])
    #expect(
      judged.map(\.claims.htu) == [
        "https://login.example.com/token", "https://login.example.com/token", "https://api.example.com/a%20b",
      ])
    #expect(
      judged.map(\.claims.htm) == ["POST", "POST", "GET"] && judged.allSatisfy { $0.claims.iat == 1_800_000_000 })
    // SHA-256 of "access token", by another program.
    #expect(judged.map(\.claims.ath) == [nil, nil, "DD1GlGu_mcghPdf2xkDtZDO9wFalto5-gPVSUxGwyhE"])
    #expect(Set(judged.map(\.claims.jti)).count == 3)
    #expect(DPoPKey(bytes: key.bytes)?.thumbprint == key.thumbprint && DPoPKey(bytes: [1]) == nil)
  }

  @Test("A demand for a nonce is met once, and only where a key is used")
  func nonceOnce() async {
    let demand = Result<HTTPResponse, TransportError>.success(
      .refusal("use_dpop_nonce", [HTTPField("DPoP-Nonce", "n")]))
    for (key, count) in [(DPoPKey?.none, 1), (DPoPKey(), 2)] {
      let bench = Bench([demand, demand, demand])
      let endpoint = TokenEndpoint(provider: .plain(), dependencies: bench.dependencies)
      #expect(
        await outcome { () throws(OIDCError) in _ = try await endpoint.redeem(.refreshToken("r"), boundTo: key) }
          == "use_dpop_nonce")
      #expect(bench.transport.sent.count == count)
    }
  }

  @Test(
    "The type of a token is the one that was asked for",
    arguments: [
      (DPoPUse.off, "Bearer", "done"), (.off, "bearer", "done"), (.off, "DPoP", "wrong_token_type"),
      (.off, "mac", "wrong_token_type"),
      (.required, "dpop", "done"), (.required, "Bearer", "wrong_token_type"), (.required, "", "wrong_token_type"),
      (.automatic, "DPoP", "done"), (.automatic, "Bearer", "done"), (.automatic, "N_A", "wrong_token_type"),
    ])
  func tokenType(use: DPoPUse, type: String, expected: String) async {
    let minter = Minter()
    let transport = Discovery.transport(#","dpop_signing_alg_values_supported":["ES256"]"#, keys: { minter.jwks }) {
      _, _ throws(TransportError) in
      .tokens(1, type: type, idToken: try? minter.token(at: ManualClock().now))
    }
    let client = Bench(transport).client(.discovered(dpop: use, allowsPasswordGrant: true))
    var bound: Bool?
    let credentials = Credentials(username: "ada", password: "x")
    let result = await outcome { () throws(OIDCError) in
      let account = try await client.signIn(with: credentials)
      bound = account.isBound
      // A provider may bind the refresh token alone.
      #expect((account.dpopKey != nil) == (use != .off))
    }
    #expect(result == expected)
    if expected == "done" { #expect(bound == (type.lowercased() == "dpop")) }
    #expect((transport.sent.first { $0.url.path == "/token" }?.value(of: "DPoP") != nil) == (use != .off))
  }

  // MARK: Answers

  private static let answers: [(String, String)] = [
    (#"{"access_token":"a","token_type":"Bearer"}"#, "3600.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":null}"#, "3600.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":0}"#, "3600.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":"60"}"#, "60.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":1e300}"#, "31622400.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":"1e300"}"#, "31622400.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":99999999999999999999999}"#, "31622400.0"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":-1}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":1e999}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":"nan"}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":"inf"}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","expires_in":[]}"#, "malformed"),
    (#"{"access_token":"","token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":"a"}"#, "3600.0"), (#"{"access_token":"a","token_type":5}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","access_token":"b"}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","x":{"a":1,"\u0061":1}}"#, "malformed"),
    (#"{"token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":5,"token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":"a b","token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":"a\u0000","token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":"ä","token_type":"Bearer"}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","refresh_token":"r\n"}"#, "malformed"),
    (#"{"access_token":"a","token_type":"Bearer","id_token":"\u001b[2J"}"#, "malformed"), ("", "malformed"),
    ("[]", "malformed"), ("null", "malformed"),
    (String(repeating: "[", count: 100_000), "malformed"),
    (#"{"access_token":"a","token_type":"Bearer"}x"#, "malformed"),
  ]

  @Test("C-031 An answer has a lifetime of at most a year, and tokens that fit into a header field", arguments: answers)
  func answer(json: String, expected: String) {
    let found: String
    do throws(OIDCError) { found = "\(try TokenResponse(json: Array(json.utf8)).tokens.expiresIn)" } catch {
      found = "malformed"
    }
    #expect(found == expected, "\(json.prefix(80))")
  }

  @Test(
    "A token of 64 KiB works, and an answer over 256 KiB is refused",
    arguments: [(65_536, "done"), (1 << 18, "document_too_large")])
  func large(size: Int, expected: String) async {
    let token = String(repeating: "a", count: size)
    let bench = Bench([.success(.json(#"{"access_token":"\#(token)","token_type":"Bearer"}"#))])
    let endpoint = TokenEndpoint(provider: .plain(), dependencies: bench.dependencies)
    #expect(await outcome { () throws(OIDCError) in _ = try await endpoint.redeem(.refreshToken("r")) } == expected)
  }

  private static let refusals: [(Int, String, String)] = [
    (400, #"{"error":"invalid_grant"}"#, "invalid_grant"), (401, #"{"error":"invalid_client"}"#, "invalid_client"),
    (403, #"{"error":"mfa_required"}"#, "mfa_required"), (500, #"{"error":"invalid_grant"}"#, "server_error"),
    (429, #"{"error":"slow_down"}"#, "slow_down"),
    (429, #"{"error":"invalid_grant"}"#, "server_error"), (400, "", "server_error"),
    (400, #"{"error":""}"#, "server_error"),
    (400, #"{"error":"a b"}"#, "a b"), (400, #"{"error":"\u001b[2J"}"#, "server_error"),
    (400, #"{"error":" "}"#, "server_error"), (400, #"{"error":"a\"b"}"#, "server_error"),
    (400, #"{"error":"a\\b"}"#, "server_error"),
    (400, #"{"error":"invalid_grant","error_description":5}"#, "invalid_grant"),
    (400, #"{"message":"Bad request"}"#, "server_error"), (400, #"{"error":{"code":400}}"#, "server_error"),
    (400, "<html><h1>400 Bad Request</h1></html>", "server_error"),
    (400, #"{"error":5}"#, "server_error"),
    (400, #"{"error":"\#(String(repeating: "x", count: 65))"}"#, "server_error"),
    (400, String(repeating: "[", count: 90_000), "server_error"),
    (302, "", "redirect_refused"), (307, "", "redirect_refused"), (204, "", "server_error"),
    (200, "", "answer_malformed"),
  ]

  @Test("C-023 Each status and each error code has its error", arguments: refusals)
  func refusal(status: Int, json: String, expected: String) async {
    let bench = Bench([.success(.json(json, status: status))])
    let endpoint = TokenEndpoint(provider: .plain(), dependencies: bench.dependencies)
    #expect(await outcome { () throws(OIDCError) in _ = try await endpoint.redeem(.refreshToken("r")) } == expected)
    #expect(bench.transport.sent.count == 1)
  }
}

@Suite("Device, password, revocation", .timeLimit(.minutes(1)))
struct OtherGrantTests {
  private static func device(_ more: String = #","expires_in":600,"interval":5"#) -> HTTPResponse {
    .json(#"{"device_code":"d","user_code":"ABCD-EFGH","verification_uri":"https://a.example/d"\#(more)}"#)
  }

  /// The outcome of a device grant with these answers, and the pauses in seconds.
  private func run(
    _ answers: [Result<HTTPResponse, TransportError>], _ device: HTTPResponse = OtherGrantTests.device()
  ) async throws -> (outcome: String, pauses: [Int], requests: Int) {
    let bench = Bench([.success(device)] + answers)
    let client = bench.client()
    let authorization = try await client.beginDeviceGrant()
    #expect(bench.transport.forms[0] == ["scope": "files mail", "client_id": "app"])
    let result = await outcome { () throws(OIDCError) in _ = try await client.finish(authorization) }
    return (
      result, bench.clock.pauses.value.map { Int($0.components.seconds) }, bench.transport.forms(to: "/token").count
    )
  }

  private static let pending = Result<HTTPResponse, TransportError>.success(.refusal("authorization_pending"))
  private static let slow = Result<HTTPResponse, TransportError>.success(.refusal("slow_down"))
  private static let good = Result<HTTPResponse, TransportError>.success(.tokens(1))

  @Test("A device grant waits, slows down by five seconds each time, and ends with tokens")
  func device() async throws {
    // Some providers answer with the status of a rate limit.
    let limited = Result<HTTPResponse, TransportError>.success(.json(#"{"error":"slow_down"}"#, status: 429))
    let run = try await run([Self.pending, Self.slow, Self.pending, limited, Self.good])
    #expect(run.outcome == "done" && run.pauses == [5, 5, 10, 10, 15] && run.requests == 5)
  }

  @Test("A device grant asks again after a lost answer, and later each time")
  func lost() async throws {
    let run = try await run([
      .failure(.lost("x")), .failure(.unreachable("x")),
      .success(.json("", status: 503, [HTTPField("Retry-After", "30")])), Self.good,
    ])
    #expect(run.outcome == "done" && run.pauses == [5, 10, 20, 30])
  }

  @Test("A device grant asks again after a request that did not arrive in time, as after a lost answer")
  func timedOut() async throws {
    let run = try await run([.success(.json("", status: 408)), Self.pending, Self.good])
    #expect(run.outcome == "done" && run.pauses == [5, 10, 10])
  }

  @Test("A lost answer makes no pause shorter that slow_down has made longer")
  func lostAfterSlowDown() async throws {
    let run = try await run(
      [Self.slow, .failure(.lost("x")), Self.pending, Self.good], Self.device(#","expires_in":600,"interval":60"#))
    #expect(run.outcome == "done" && run.pauses == [60, 65, 65, 65])
  }

  @Test(
    "A device grant stops at what ends it",
    arguments: [
      ("expired_token", "expired_token"), ("access_denied", "access_denied"), ("invalid_client", "invalid_client"),
    ])
  func stops(code: String, expected: String) async throws {
    let run = try await run([Self.pending, .success(.refusal(code)), Self.good])
    #expect(run.outcome == expected && run.requests == 2)
  }

  @Test("A device grant ends when its code expires, whatever pause the provider asks for")
  func expiry() async throws {
    let busy = HTTPResponse.json("", status: 503, [HTTPField("Retry-After", "86400")])
    let run = try await run([.success(busy)])
    #expect(run.outcome == "expired_token" && run.pauses == [5, 595] && run.requests == 1)
  }

  @Test("A cancelled device grant asks no further")
  func cancelled() async throws {
    let bench = Bench([.success(Self.device())])
    let client = bench.client()
    let authorization = try await client.beginDeviceGrant()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return await outcome { () throws(OIDCError) in _ = try await client.finish(authorization) }
    }
    task.cancel()
    #expect(await task.value == "expired_token")
    #expect(bench.transport.sent.count == 1)
  }

  private static let documents: [(String, Int?)] = [
    (#","expires_in":600"#, 5), (#","expires_in":600,"interval":0"#, 1), (#","expires_in":600,"interval":-5"#, 1),
    (#","expires_in":600,"interval":9000000000000000000"#, 60), (#","expires_in":9000000000000000000"#, 5),
    (#","expires_in":-1"#, 5), (#","expires_in":1e300"#, nil), (#","expires_in":600,"interval":1e300"#, nil), ("", nil),
    (#","expires_in":600,"verification_uri_complete":"https://a.example/d?c=A"}"#, nil),
    (#","expires_in":600,"verification_uri_complete":"https://a.example/d?c=A""#, 5),
    (#","expires_in":600,"verification_uri_complete":"http://a.example/""#, nil),
    (#","expires_in":600,"verification_uri_complete":"https://a.example/\u001b[2J""#, nil),
    (#","expires_in":600,"verification_uri_complete":"javascript:alert(1)""#, nil),
  ]

  @Test("The numbers and addresses of a device grant are bounded", arguments: documents)
  func document(more: String, interval: Int?) async {
    let clock = ManualClock()
    let found = try? DeviceAuthorization(json: Self.device(more).body, at: clock.now)
    #expect(found?.interval == interval)
    if let found { #expect((0...3600).contains(found.expiresAt.timeIntervalSince(clock.now))) }
  }

  @Test("A user code is printable, and not empty", arguments: ["", "A\\nB", "\\u001b[2J", "A\\u0000"])
  func userCode(code: String) {
    let json = #"{"device_code":"d","user_code":"\#(code)","verification_uri":"https://a.example","expires_in":600}"#
    #expect(throws: OIDCError.self) { try DeviceAuthorization(json: Array(json.utf8), at: .distantPast) }
  }

  @Test(
    "T-26 C-010 The password grant is refused unless the entry allows it; a demand for a second factor is recognised")
  func password() async {
    let credentials = Credentials(username: "ada", password: "x")
    for (isAllowed, answer, expected) in [
      (false, HTTPResponse.tokens(1), "not_offered"), (true, .tokens(1), "done"),
      (true, .refusal("mfa_required", status: 403), "mfa_required"), (true, .refusal("invalid_grant"), "invalid_grant"),
    ] {
      let bench = Bench([.success(answer)])
      let client = bench.client(.plain(allowsPasswordGrant: isAllowed))
      #expect(await outcome { () throws(OIDCError) in _ = try await client.signIn(with: credentials) } == expected)
      #expect(bench.transport.sent.count == (isAllowed ? 1 : 0))
    }
  }

  @Test("C-026 A browser ends the session at an address that keeps its query and contains no token")
  func endSession() async throws {
    #expect(
      try await Bench([]).client().endSessionURL()?.absoluteString
        == "https://login.example.com/end?tenant=1&client_id=app")
    let transport = Discovery.transport(keys: { "" }) { _, _ throws(TransportError) in .tokens(1) }
    #expect(try await Bench(transport).client(.discovered()).endSessionURL() == nil)
  }

  @Test(
    "C-026 A revocation accepts 200 and 204, and reports anything else",
    arguments: [(200, "done"), (204, "done"), (400, "server_error"), (302, "redirect_refused"), (503, "server_error")])
  func revocation(status: Int, expected: String) async {
    let bench = Bench([.success(.json("", status: status))])
    let client = bench.client(.plain(secret: "s"))
    let account = StoredAccount.sample(at: bench.clock.now)
    #expect(await outcome { () throws(OIDCError) in try await client.revoke(account) } == expected)
    #expect(bench.transport.sent[0].value(of: "Authorization")?.hasPrefix("Basic ") == true)
    #expect(bench.transport.forms[0] == ["token": "refresh-0", "token_type_hint": "refresh_token"])
  }
}
