import ByteCoding
import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

@Suite("Clients that authenticate by an attestation", .timeLimit(.minutes(1)))
struct AttestedClientTests {
  private static func provider(
    _ proof: AttestationProof = .automatic, discovers: Bool = true, dpop: DPoPUse = .automatic
  ) -> IdentityProvider {
    discovers
      ? IdentityProvider(
        id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", scopes: [],
        authentication: .attestation(proof), dpop: dpop, variations: ProviderVariations(grant: .clientCredentials))
      : .plain(authentication: .attestation(proof), dpop: dpop, issuer: "https://login.example.com")
  }

  /// The claims of the JWT in the field `name` of a request.
  private func claims(_ name: String, of request: HTTPRequest?) throws -> [String: Any] {
    let text = try #require(request?.value(of: name))
    let payload = try #require(Base64URL.decode(text.split(separator: ".")[1]))
    return try #require(JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
  }

  private func tokens(
    _ provider: IdentityProvider, _ more: String = "", attester: (any ClientAttester)? = SampleAttester(),
    _ answer: @escaping ScriptedTransport.Answer
  ) async throws -> (ScriptedTransport, Result<StoredAccount, OIDCError>) {
    let transport = Discovery.transport(more, keys: { "{}" }, answer)
    let client = ProviderClient(provider: provider, dependencies: Bench(transport).dependencies(attester))
    do throws(OIDCError) { return (transport, .success(try await client.ownTokens())) } catch {
      return (transport, .failure(error))
    }
  }

  @Test("The request has the attestation and a proof for the issuer, and the client id alone in the form")
  func proof() async throws {
    let (transport, result) = try await tokens(Self.provider(dpop: .off)) { _, _ in .tokens(1) }
    _ = try result.get()
    let request = transport.sent.last
    #expect(transport.forms.last == ["grant_type": "client_credentials", "client_id": "app"])
    #expect(request?.value(of: "DPoP") == nil && request?.value(of: "Authorization") == nil)
    #expect(try claims("OAuth-Client-Attestation", of: request)["sub"] as? String == "app")
    let proof = try claims("OAuth-Client-Attestation-PoP", of: request)
    #expect(proof["aud"] as? String == "https://login.example.com" && proof["iat"] as? Int == 1_800_000_000)
    #expect((proof["jti"] as? String)?.utf8.count == 43 && proof["challenge"] == nil && proof.count == 3)
  }

  @Test("A challenge of the endpoint is in the first proof, and that of an answer in the second")
  func challenges() async throws {
    let more = #","challenge_endpoint":"https://login.example.com/challenge""#
    let (transport, result) = try await tokens(Self.provider(dpop: .off), more) { request, _ in
      if request.url.path == "/challenge" { return .json(#"{"attestation_challenge":"c1"}"#) }
      let isFirst = request.value(of: "OAuth-Client-Attestation-PoP").map(Self.challenge) == "c1"
      return isFirst
        ? .refusal(
          "use_attestation_challenge", [HTTPField("OAuth-Client-Attestation-Challenge", "c2")])
        : .tokens(1)
    }
    _ = try result.get()
    #expect(transport.count(of: "/challenge") == 1 && transport.count(of: "/token") == 2)
    #expect(try claims("OAuth-Client-Attestation-PoP", of: transport.sent.last)["challenge"] as? String == "c2")
  }

  @Test("The challenge of any answer is the newest one, so that a provider may accept each once")
  func newestChallenge() async throws {
    let field = "OAuth-Client-Attestation-Challenge"
    let (transport, result) = try await tokens(Self.provider(dpop: .off)) { request, _ in
      switch request.value(of: "OAuth-Client-Attestation-PoP").flatMap(Self.challenge) {
      case nil: .refusal("use_attestation_challenge", [HTTPField(field, "c1")])
      case "c1"?: .refusal("use_fresh_attestation", [HTTPField(field, "c2")])
      case "c2"?: .tokens(1)
      default: .refusal("use_attestation_challenge", [HTTPField(field, "c3")])
      }
    }
    _ = try result.get()
    #expect(transport.count(of: "/token") == 3)
  }

  private static func challenge(_ proof: String) -> String? {
    let payload = Base64URL.decode(proof.split(separator: ".")[1]) ?? []
    return (try? JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])?["challenge"] as? String
  }

  @Test("An attestation that is too old is replaced, once; every demand is met once, and then the refusal counts")
  func demands() async throws {
    let attester = SampleAttester()
    let (transport, result) = try await tokens(Self.provider(dpop: .off), attester: attester) { _, _ in
      .refusal("use_fresh_attestation", status: 401)
    }
    #expect(result.failure?.code == "use_fresh_attestation" && transport.count(of: "/token") == 2)
    #expect(attester.calls.value == [false, true])
    // A server that demands one thing after the other gets each, in at most four requests.
    let (second, other) = try await tokens(Self.provider(.dpop)) { _, number in
      switch number % 4 {
      case 2: .refusal("use_dpop_nonce", [HTTPField("DPoP-Nonce", "n\(number)")])
      case 3: .refusal("use_attestation_challenge", [HTTPField("OAuth-Client-Attestation-Challenge", "c")])
      default: .refusal("use_fresh_attestation")
      }
    }
    #expect(other.failure?.code != nil && second.count(of: "/token") == 4)
    // A demand without its value is a refusal.
    let (third, _) = try await tokens(Self.provider(dpop: .off)) { _, _ in .refusal("use_attestation_challenge") }
    #expect(third.count(of: "/token") == 1)
  }

  @Test(
    "Where the DPoP proof stands for the other, it is by the key of the attestation, and the tokens are bound to it")
  func combined() async throws {
    let more =
      #","token_endpoint_auth_methods_supported":["attest_jwt_client_auth_dpop"],"challenge_endpoint":"#
      + #""https://login.example.com/challenge""#
    let attester = SampleAttester()
    let (transport, result) = try await tokens(Self.provider(), more, attester: attester) { request, _ in
      request.url.path == "/challenge"
        ? .json(#"{"attestation_challenge":"c1"}"#, [HTTPField("DPoP-Nonce", "n1")])
        : .tokens(1, type: "DPoP")
    }
    #expect(try result.get().dpopKey == attester.key)
    let request = transport.sent.last
    #expect(request?.value(of: "OAuth-Client-Attestation-PoP") == nil)
    #expect(try claims("DPoP", of: request)["nonce"] as? String == "n1")
    let header = try #require(request?.value(of: "DPoP").flatMap { Base64URL.decode($0.split(separator: ".")[0]) })
    #expect(String(decoding: header, as: UTF8.self).contains(attester.key.coordinates.x))
  }

  @Test("The method is that of the document: the combined one where it is the only one, and DPoP is allowed")
  func method() throws {
    let (own, both) = ("attest_jwt_client_auth", "attest_jwt_client_auth_dpop")
    for (methods, allows, expected) in [
      (nil, true, .pop), ([own], true, .pop), ([both], true, .dpop), ([own, both], true, .pop), ([both], false, .pop),
      (["none"], true, .pop),
    ] as [([String]?, Bool, AttestationProof)] {
      #expect(
        try AttestationProof.automatic.chosen(among: methods, dpopAlgorithms: nil, allowsDPoP: allows) == expected)
    }
    #expect(try AttestationProof.pop.chosen(among: [both], dpopAlgorithms: [], allowsDPoP: true) == .pop)
  }

  @Test("A combined proof goes to no provider that verifies DPoP with other algorithms alone")
  func algorithms() async throws {
    let more = #","token_endpoint_auth_methods_supported":["attest_jwt_client_auth_dpop"]"#
    let others = more + #","dpop_signing_alg_values_supported":["none","ES256K","RS256","HS256"]"#
    for proof in [AttestationProof.automatic, .dpop] {
      let (refused, result) = try await tokens(Self.provider(proof), others) { _, _ in .tokens(1, type: "DPoP") }
      #expect(result.failure?.code == "not_offered" && refused.count(of: "/token") == 0)
    }
    let (_, own) = try await tokens(Self.provider(.pop), others) { _, _ in .tokens(1) }
    _ = try own.get()
    let (_, known) = try await tokens(
      Self.provider(), more + #","dpop_signing_alg_values_supported":["RS256","ES256"]"#
    ) { _, _ in .tokens(1, type: "DPoP") }
    _ = try known.get()
  }

  @Test("An own proof is for the issuer, whatever the audience of assertions; without an issuer there is none")
  func audience() async throws {
    var provider = IdentityProvider.plain(
      authentication: .attestation(.pop), issuer: "https://login.example.com",
      variations: ProviderVariations(assertionAudience: .tokenEndpoint, grant: .clientCredentials))
    let (transport, result) = try await tokens(provider) { _, _ in .tokens(1) }
    _ = try result.get()
    let proof = try claims("OAuth-Client-Attestation-PoP", of: transport.sent.last)
    #expect(proof["aud"] as? String == "https://login.example.com")
    #expect(provider.faults.map(\.field) == ["assertion_audience"])
    provider = .plain(
      authentication: .attestation(.pop), variations: ProviderVariations(grant: .clientCredentials))
    #expect(provider.faults.map(\.description) == ["authentication: attestation needs issuer: its proofs are for that"])
    let (silent, none) = try await tokens(provider) { _, _ in .tokens(1) }
    #expect(none.failure?.code == "client_attestation_unusable" && silent.sent.isEmpty)
    #expect(IdentityProvider.plain(authentication: .attestation(.dpop), dpop: .required).faults.isEmpty)
  }

  @Test("A challenge or nonce that is too long is named, and no proof goes without it", arguments: [1024, 1025])
  func longest(bytes: Int) async throws {
    let long = String(repeating: "c", count: bytes)
    let more = #","challenge_endpoint":"https://login.example.com/challenge""#
    for (body, fields) in [
      (#"{"attestation_challenge":"\#(long)"}"#, []),
      (#"{"attestation_challenge":"c"}"#, [HTTPField("DPoP-Nonce", long)]),
    ] as [(String, [HTTPField])] {
      let (transport, result) = try await tokens(Self.provider(dpop: .off), more) { request, _ in
        request.url.path == "/challenge" ? .json(body, fields) : .tokens(1)
      }
      #expect(transport.count(of: "/token") == (bytes > 1024 ? 0 : 1))
      #expect(result.failure?.code == (bytes > 1024 ? "answer_malformed" : nil))
      if let failure = result.failure { #expect("\(failure)".contains("longer than 1024 bytes")) }
    }
    // In an answer that refuses, the refusal stands: the provider has not looked at the grant.
    let (transport, result) = try await tokens(Self.provider(dpop: .off)) { _, number in
      number == 2
        ? .refusal("use_attestation_challenge", [HTTPField("OAuth-Client-Attestation-Challenge", long)]) : .tokens(1)
    }
    #expect(transport.count(of: "/token") == (bytes > 1024 ? 1 : 2))
    if bytes > 1024 {
      let text = try #require(result.failure.map { "\($0)" })
      #expect(text.contains("use_attestation_challenge (the field OAuth-Client-Attestation-Challenge is longer than"))
    }
  }

  @Test("Why a demand was not met is said: no value, or the same demand again")
  func unmet() async throws {
    let (_, without) = try await tokens(Self.provider(dpop: .off)) { _, _ in .refusal("use_attestation_challenge") }
    #expect(without.failure.map { "\($0)".contains("(the answer has no field OAuth-Client-Attestation-Chal") } == true)
    let (_, again) = try await tokens(Self.provider(dpop: .off)) { _, _ in
      .refusal("use_attestation_challenge", [HTTPField("OAuth-Client-Attestation-Challenge", "c")])
    }
    #expect(again.failure.map { "\($0)".contains("(the provider asks for it again after it was given)") } == true)
  }

  @Test("What the challenge endpoint answers in place of a challenge is named")
  func challengeFaults() async throws {
    let more = #","challenge_endpoint":"https://login.example.com/challenge""#
    for (answer, part) in [
      (.json(#"{"attestation_challenge":"a","attestation_challenge":"b"}"#), "a member twice"),
      (.json("[]"), "no JSON object"), (.json("{}"), "attestation_challenge is missing"),
      (.json("", status: 404), "status 404"), (.json("", status: 500), "status 500"),
    ] as [(HTTPResponse, String)] {
      let (transport, result) = try await tokens(Self.provider(dpop: .off), more) { request, _ in
        request.url.path == "/challenge" ? answer : .tokens(1)
      }
      let failure = try #require(result.failure)
      #expect("\(failure)".contains("the challenge endpoint") && "\(failure)".contains(part), "\(failure)")
      #expect(failure.isOfMissingChallengeEndpoint == (answer.status == 404))
      #expect(transport.count(of: "/token") == 0)
    }
  }

  @Test("An exchange of a token that is bound to no key is for the key of a combined proof, and for none otherwise")
  func exchange() async throws {
    let attester = SampleAttester()
    let subject = TokenExchange(subject: .init("subject", type: .accessToken))
    for (proof, type) in [(AttestationProof.dpop, "DPoP"), (.pop, "Bearer")] {
      let transport = Discovery.transport(keys: { "{}" }) { _, _ in .tokens(1, type: type) }
      let client = ProviderClient(
        provider: Self.provider(proof, dpop: proof == .dpop ? .automatic : .off),
        dependencies: Bench(transport).dependencies(attester))
      #expect(try await client.exchange(subject).tokens.tokenType == type)
      #expect((transport.sent.last?.value(of: "DPoP") == nil) == (proof == .pop))
    }
  }

  @Test("A grant whose tokens are kept elsewhere brings tokens for the key of a combined proof")
  func keptElsewhere() async throws {
    let transport = ScriptedTransport([.success(.tokens(1, type: "DPoP"))])
    let provider = IdentityProvider.plain(
      authentication: .attestation(.dpop), dpop: .required, issuer: "https://login.example.com")
    let client = ProviderClient(provider: provider, dependencies: Bench(transport).dependencies(SampleAttester()))
    #expect(try await client.exchange(.refreshToken("r")).tokens.refreshToken == "refresh-1")
    #expect(transport.sent.first?.value(of: "DPoP") != nil)
  }

  @Test("Without an attester, or with tokens of another key, nothing is sent")
  func nothingSent() async throws {
    let (transport, result) = try await tokens(Self.provider(dpop: .off), attester: nil) { _, _ in .tokens(1) }
    #expect(result.failure?.code == "client_attestation_unusable" && transport.count(of: "/token") == 0)
    let sent = ScriptedTransport([])
    let endpoint = TokenEndpoint(
      provider: Self.provider(.dpop, discovers: false),
      dependencies: SignInDependencies(transport: sent, attester: SampleAttester()))
    await #expect(throws: OIDCError.self) { try await endpoint.redeem(.refreshToken("r"), boundTo: DPoPKey()) }
    #expect(sent.sent.isEmpty)
  }

  @Test("The rules of an entry: no secret, and no combined proof without DPoP")
  func rules() {
    func faults(_ provider: IdentityProvider) -> [String] { provider.faults.map(\.field) }
    #expect(faults(Self.provider(.dpop)) == [] && faults(Self.provider(.pop, dpop: .off)) == [])
    #expect(faults(Self.provider(.dpop, dpop: .off)) == ["attestation_proof"])
    let secret = IdentityProvider.plain(secret: "s", authentication: .attestation(.pop), issuer: "https://a.example")
    #expect(faults(secret) == ["client_secret"])
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
