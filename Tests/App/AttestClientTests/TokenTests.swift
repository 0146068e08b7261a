import AttestClient
import ByteCoding
import Cryptography
import Foundation
import Wire
import Testing

/// A DPoP key in memory.
private struct MemoryKey: DPoPKey {
  let key: P256PrivateKey
  var failure: KeyServiceError?

  init(failure: KeyServiceError? = nil) throws {
    key = try P256PrivateKey()
    self.failure = failure
  }

  var publicKey: [UInt8] { key.publicKey.x963 }

  func signature(for message: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    if let failure { throw failure }
    do throws(CryptographyError) { return try key.es256Signature(for: message) } catch { throw .invalidInput }
  }
}

@Suite("Access tokens")
struct TokenTests {
  private func refusal(_ status: Int, _ code: GateRefusalCode) -> HTTPResponse {
    HTTPResponse(status: status, headers: [HTTPField("x-attest-error", code.rawValue)], body: Array("no".utf8))
  }

  private func value(of name: String, in request: HTTPRequest) throws -> String {
    try #require(request.headers.first { $0.name == name }).value
  }

  /// Returns the header and the claims of a proof, after its signature was verified.
  private func parts(of proof: String, by key: MemoryKey) throws -> (header: [String: Any], claims: [String: Any]) {
    let parts = try proof.split(separator: ".").map { try #require(Base64URL.decode($0)) }
    let signed = proof[..<(try #require(proof.lastIndex(of: ".")))]
    #expect(parts.count == 3 && key.key.publicKey.isValidES256Signature(parts[2], for: Array(signed.utf8)))
    func object(_ bytes: [UInt8]) throws -> [String: Any] {
      try #require(JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    }
    return (try object(parts[0]), try object(parts[1]))
  }

  @Test("A token request has the assertion's headers, a proof over the same nonce, and the audience")
  func request() async throws {
    let fixture = try Fixture()
    let key = try MemoryKey()
    let token = try await fixture.session.accessToken(for: "https://api.example/ä b", boundTo: key)
    #expect(token == AccessToken(text: "a.b.c", lifetime: .seconds(90)))
    let sent = try #require(fixture.gate.tokenRequests.first)
    #expect(sent.method == .post && sent.url.absoluteString == "https://gate.example:6200/attest/token")
    #expect(String(decoding: sent.body, as: UTF8.self) == "audience=https%3A%2F%2Fapi.example%2F%C3%A4%20b")
    #expect(try value(of: "Content-Type", in: sent) == "application/x-www-form-urlencoded")
    for name in ["X-App-Assert-KeyId", "X-App-Assert-Data"] { #expect(try !value(of: name, in: sent).isEmpty) }
    let (header, claims) = try parts(of: value(of: "DPoP", in: sent), by: key)
    let point = key.publicKey
    #expect(header["typ"] as? String == "dpop+jwt" && header["alg"] as? String == "ES256")
    #expect(
      header["jwk"] as? [String: String] == [
        "kty": "EC", "crv": "P-256", "x": Base64URL.encode(point[1..<33]), "y": Base64URL.encode(point[33...]),
      ])
    #expect(claims["htm"] as? String == "POST" && claims["htu"] as? String == sent.url.absoluteString)
    #expect(claims["nonce"] as? String == (try value(of: "X-App-Assert-Nonce", in: sent)))
    #expect(claims["iat"] as? Int == 1_700_000_000 && claims["ath"] == nil)
  }

  @Test("A request to the service carries the token, and a proof for this request and this token")
  func fields() throws {
    let key = try MemoryKey()
    let token = AccessToken(text: "a.b.c", lifetime: .seconds(300))
    let url = try #require(URL(string: "https://api.example/v1/x?page=2#top"))
    let now = Timestamp(seconds: 1_700_000_000)
    let fields = try token.fields(for: "GET", url, nonce: "n", key: key, at: now)
    #expect(fields.map(\.name) == ["Authorization", "DPoP"] && fields[0].value == "DPoP a.b.c")
    let claims = try parts(of: fields[1].value, by: key).claims
    #expect(claims["htm"] as? String == "GET" && claims["htu"] as? String == "https://api.example/v1/x")
    #expect(claims["ath"] as? String == Base64URL.encode(SHA256.hash(Array("a.b.c".utf8))))
    #expect(claims["nonce"] as? String == "n" && claims["iat"] as? Int == 1_700_000_000)
    #expect(try token.fields(for: "GET", url, key: key, at: now)[1] != fields[1], "each proof has an id of its own")
  }

  @Test("A client attestation is asked for by its client, and its proof names the authorization server")
  func attestation() async throws {
    let fixture = try Fixture()
    let key = try MemoryKey()
    fixture.gate.script(tokens: [
      HTTPResponse(status: 200, body: Array(#"{"client_attestation":"d.e.f","expires_in":3600}"#.utf8))
    ])
    let attestation = try await fixture.session.clientAttestation(for: "wallet app", boundTo: key)
    #expect(attestation == ClientAttestation(text: "d.e.f", lifetime: .seconds(3600)))
    let sent = try #require(fixture.gate.tokenRequests.first)
    #expect(String(decoding: sent.body, as: UTF8.self) == "client_id=wallet%20app")
    let now = Timestamp(seconds: 1_700_000_000)
    let fields = try attestation.fields(for: "https://as.example", challenge: "c-1", key: key, at: now)
    #expect(fields.map(\.name) == ["OAuth-Client-Attestation", "OAuth-Client-Attestation-PoP"])
    #expect(fields[0].value == "d.e.f")
    let (header, claims) = try parts(of: fields[1].value, by: key)
    #expect(header as? [String: String] == ["typ": "oauth-client-attestation-pop+jwt", "alg": "ES256"])
    #expect(claims["aud"] as? String == "https://as.example" && claims["challenge"] as? String == "c-1")
    #expect(claims["iat"] as? Int == 1_700_000_000 && (claims["jti"] as? String)?.utf8.count == 22)
    #expect(claims.count == 4)
    #expect(try attestation.fields(for: "https://as.example", key: key, at: now)[1] != fields[1])
  }

  @Test("A request whose nonce the gate refuses is sent once more, with another proof")
  func retried() async throws {
    let fixture = try Fixture()
    fixture.gate.script(tokens: [refusal(401, .nonceUsed)])
    #expect(try await fixture.session.accessToken(for: "ledger", boundTo: MemoryKey()).text == "a.b.c")
    let sent = fixture.gate.tokenRequests
    #expect(try sent.count == 2 && value(of: "DPoP", in: sent[0]) != value(of: "DPoP", in: sent[1]))
  }

  @Test(
    "Refusals, a failing key and answers without a token are errors",
    arguments: [GateRefusalCode.audienceRefused, .dpopRefused, .notFound])
  func errors(_ code: GateRefusalCode) async throws {
    let fixture = try Fixture()
    fixture.gate.script(tokens: [refusal(code.definition.status, code)])
    let error = await #expect(throws: AttestError.self) {
      try await fixture.session.accessToken(for: "ledger", boundTo: MemoryKey())
    }
    guard case .assertionFailed(let refusal) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(refusal.code == code)
    await #expect(throws: AttestError.keyService(.invalidKey)) {
      try await fixture.session.accessToken(for: "ledger", boundTo: MemoryKey(failure: .invalidKey))
    }
    for body in ["", "{}", #"{"access_token":"x","token_type":"Bearer","expires_in":1}"#] {
      fixture.gate.script(tokens: [HTTPResponse(status: 200, body: Array(body.utf8))])
      await #expect(throws: AttestError.transport(.malformed("the answer has no token"))) {
        try await fixture.session.accessToken(for: "ledger", boundTo: MemoryKey())
      }
    }
  }
}
