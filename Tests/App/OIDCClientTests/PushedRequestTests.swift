import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

@Suite("Pushed requests and exchanged tokens", .timeLimit(.minutes(1)))
struct PushedRequestTests {
  @Test(
    "A reference is printable and short, and its lifetime is there",
    arguments: [
      (#"{"request_uri":"urn:x","expires_in":60}"#, "urn:x 60"),
      (#"{"request_uri":"urn:x","expires_in":"90"}"#, "urn:x 90"),
      (#"{"request_uri":"urn:x","expires_in":1e300}"#, "urn:x 86400"), (#"{"request_uri":"urn:x"}"#, nil),
      (#"{"request_uri":"urn:x","expires_in":0}"#, nil), (#"{"request_uri":"urn:x","expires_in":-1}"#, nil),
      (#"{"request_uri":"","expires_in":60}"#, nil), (#"{"request_uri":"a b","expires_in":60}"#, nil),
      (#"{"request_uri":7,"expires_in":60}"#, nil), (#"{"expires_in":60}"#, nil), ("[]", nil), ("", nil),
      (#"{"request_uri":"urn:x","request_uri":"urn:y","expires_in":60}"#, nil),
    ] as [(String, String?)])
  func answer(json: String, expected: String?) {
    let found = try? PushedRequest(json: Array(json.utf8))
    #expect(found.map { "\($0.uri) \($0.lifetime)" } == expected)
  }

  @Test("The browser carries client and reference; the provider gets the rest, with the client named once")
  func request() async throws {
    let more =
      #","pushed_authorization_request_endpoint":"https://login.example.com/par","require_pushed_authorization_requests":true"#
    for (secret, names) in [(nil, true), ("s", true)] as [(String?, Bool)] {
      let transport = Discovery.transport(more, keys: { "" }) { _, _ throws(TransportError) in
        .json(#"{"request_uri":"urn:ietf:x?a=b&c","expires_in":60}"#, status: 201)
      }
      let bench = Bench(transport)
      let request = try await bench.client(.discovered(secret: secret)).begin(redirectURI: "http://127.0.0.1:1/a")
      #expect(
        request.url.absoluteString
          == "https://login.example.com/authorize?client_id=app&request_uri=urn%3Aietf%3Ax%3Fa%3Db%26c")
      #expect(request.lifetime == 60)
      // Fields that are there twice are no form.
      let form = try #require(transport.forms(to: "/par").first)
      #expect(form["state"] == request.state && form["nonce"] == request.nonce && form["response_type"] == "code")
      #expect((form["client_id"] == "app") == names && form["code_challenge"] == request.pkce.challenge)
    }
  }

  @Test("A provider that demands pushed requests and does not name their endpoint is not signed in with")
  func missing() async {
    let transport = Discovery.transport(#","require_pushed_authorization_requests":true"#, keys: { "" }) {
      _, _ throws(TransportError) in .tokens(1)
    }
    let bench = Bench(transport)
    await #expect(throws: OIDCError.notOffered("pushed authorization requests")) {
      try await bench.client(.discovered()).begin(redirectURI: "x:/y")
    }
    let report = await bench.client(.discovered()).report()
    #expect(report.problems.contains { $0.code == "not_offered" })
  }

  @Test("An exchange sends every value; those of the request replace the parameters of the entry")
  func exchange() async throws {
    let bench = Bench([
      .success(
        .json(
          #"{"access_token":"new","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:jwt"}"#)),
      .success(.tokens(2, type: "DPoP")),
    ])
    var variations = ProviderVariations()
    variations.tokenParameters = ["audience": "entry", "tenant": "t"]
    let client = bench.client(.plain(variations: variations))
    let exchange = TokenExchange(
      subject: .init("subject", type: .accessToken), actor: .init("actor", type: try #require(.init("jwt"))),
      audiences: ["a", "b"], resources: ["https://r.example"], scopes: ["x", "y"], requestedType: .idToken)
    let answer = try await client.exchange(exchange)
    #expect(answer.issuedType == "urn:ietf:params:oauth:token-type:jwt" && !answer.namesLifetime)
    let type = "urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3A"
    #expect(
      String(decoding: bench.transport.sent[0].body, as: UTF8.self)
        == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=subject"
        + "&subject_token_type=\(type)access_token&actor_token=actor&actor_token_type=\(type)jwt&audience=a&audience=b"
        + "&resource=https%3A%2F%2Fr.example&scope=x%20y&requested_token_type=\(type)id_token&tenant=t&client_id=app")
    // A token that is bound to a key that was not asked for is refused.
    await #expect(throws: OIDCError.tokenType("DPoP")) { try await client.exchange(exchange) }
    #expect("\(exchange.subject)".contains("access_token") && !"\(exchange)".contains("actor\""))
  }

  @Test(
    "A type is a known name or a URI",
    arguments: [("jwt", true), ("urn:x:y", true), ("x", false), ("", false), ("a: b", false)])
  func types(text: String, isType: Bool) {
    #expect((TokenExchange.TokenType(text) != nil) == isType)
  }
}
