import ByteCoding
import Foundation
import HTTPExchange
import TestSupport
import Testing

@testable import OIDCClient

@Suite("Clients that authenticate by an attestation", .timeLimit(.minutes(1)))
struct AttestedClientTests {
  /// Attests with one key, and counts.
  private final class Attester: ClientAttester {
    let key = DPoPKey()
    let calls = Watched<[Bool]>([])

    func attestedClient(isRenewed: Bool) async throws(OIDCError) -> AttestedClient {
      calls.update { $0.append(isRenewed) }
      return try AttestedClient(
        attestation: AttestedClientTests.attestation(by: key, number: calls.value.count), key: key, clientID: "app")
    }
  }

  private static func attestation(
    by key: DPoPKey, number: Int = 1, subject: String = #""app""#, end: String = "1800000600", x: String? = nil
  ) -> String {
    let point = key.coordinates
    let claims =
      #"{"sub":\#(subject),"exp":\#(end),"number":\#(number),"#
      + #""cnf":{"jwk":{"kty":"EC","crv":"P-256","x":"\#(x ?? point.x)","y":"\#(point.y)"}}}"#
    return [#"{"alg":"ES256"}"#, claims, "signature"].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
  }

  private static func provider(
    _ proof: AttestationProof = .automatic, discovers: Bool = true, dpop: DPoPUse = .automatic
  ) -> IdentityProvider {
    discovers
      ? IdentityProvider(
        id: "work", name: "Work", issuer: url("https://login.example.com"), clientID: "app", scopes: [],
        authentication: .attestation(proof), dpop: dpop, variations: ProviderVariations(grant: .clientCredentials))
      : .plain(authentication: .attestation(proof), dpop: dpop)
  }

  /// The claims of the JWT in the field `name` of a request.
  private func claims(_ name: String, of request: HTTPRequest?) throws -> [String: Any] {
    let text = try #require(request?.value(of: name))
    let payload = try #require(Base64URL.decode(text.split(separator: ".")[1]))
    return try #require(JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
  }

  private func tokens(
    _ provider: IdentityProvider, _ more: String = "", attester: (any ClientAttester)? = Attester(),
    _ answer: @escaping ScriptedTransport.Answer
  ) async throws -> (ScriptedTransport, Result<StoredAccount, OIDCError>) {
    let transport = Discovery.transport(more, keys: { "{}" }, answer)
    let bench = Bench(transport)
    let dependencies = SignInDependencies(
      transport: transport, now: bench.dependencies.now, random: bench.dependencies.random, attester: attester)
    let client = ProviderClient(provider: provider, dependencies: dependencies)
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

  private static func challenge(_ proof: String) -> String? {
    let payload = Base64URL.decode(proof.split(separator: ".")[1]) ?? []
    return (try? JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])?["challenge"] as? String
  }

  @Test("An attestation that is too old is replaced, once; every demand is met once, and then the refusal counts")
  func demands() async throws {
    let attester = Attester()
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
    let attester = Attester()
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
  func method() {
    let (own, both) = ("attest_jwt_client_auth", "attest_jwt_client_auth_dpop")
    for (methods, allows, expected) in [
      (nil, true, .pop), ([own], true, .pop), ([both], true, .dpop), ([own, both], true, .pop), ([both], false, .pop),
      (["none"], true, .pop),
    ] as [([String]?, Bool, AttestationProof)] {
      #expect(AttestationProof.automatic.chosen(among: methods, allowsDPoP: allows) == expected)
    }
    #expect(AttestationProof.pop.chosen(among: [both], allowsDPoP: true) == .pop)
  }

  @Test("An attestation for another client or key, without an end, or that is no JWT, is refused before it is sent")
  func unusable() throws {
    let (key, other) = (DPoPKey(), DPoPKey())
    func reason(_ text: String, _ key: DPoPKey = key) -> String? {
      do throws(OIDCError) {
        _ = try AttestedClient(attestation: text, key: key, clientID: "app")
        return nil
      } catch {
        return "\(error.code): \(error)"
      }
    }
    #expect(reason(Self.attestation(by: key)) == nil)
    for (text, part) in [
      (Self.attestation(by: other), "another key"), (Self.attestation(by: key, x: "AA"), "another key"),
      (Self.attestation(by: key, subject: #""wallet""#), #"for "wallet", not for this client"#),
      (Self.attestation(by: key, subject: "[]"), "not for this client"),
      (Self.attestation(by: key, end: #""soon""#), "no exp"), (Self.attestation(by: key, end: "null"), "no exp"),
      ("", "no signed JWT"), ("a.b.c", "no signed JWT"), ("a.b", "no signed JWT"), ("a b", "no JWT"),
      (Self.attestation(by: key) + "\r\nX: 1", "no JWT"), (String(repeating: "a", count: 8193), "no JWT"),
    ] {
      let found = try #require(reason(text))
      #expect(found.hasPrefix("client_attestation_unusable: ") && found.contains(part), "\(found)")
    }
  }

  @Test("Without an attester, or with tokens of another key, nothing is sent")
  func nothingSent() async throws {
    let (transport, result) = try await tokens(Self.provider(dpop: .off), attester: nil) { _, _ in .tokens(1) }
    #expect(result.failure?.code == "client_attestation_unusable" && transport.count(of: "/token") == 0)
    let sent = ScriptedTransport([])
    let endpoint = TokenEndpoint(
      provider: Self.provider(.dpop, discovers: false),
      dependencies: SignInDependencies(transport: sent, attester: Attester()))
    await #expect(throws: OIDCError.self) { try await endpoint.redeem(.refreshToken("r"), boundTo: DPoPKey()) }
    #expect(sent.sent.isEmpty)
  }

  @Test("The rules of an entry: no secret, and no combined proof without DPoP")
  func rules() {
    func faults(_ provider: IdentityProvider) -> [String] { provider.faults.map(\.field) }
    #expect(faults(Self.provider(.dpop)) == [] && faults(Self.provider(.pop, dpop: .off)) == [])
    #expect(faults(Self.provider(.dpop, dpop: .off)) == ["attestation_proof"])
    #expect(faults(.plain(secret: "s", authentication: .attestation(.pop))) == ["client_secret"])
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
