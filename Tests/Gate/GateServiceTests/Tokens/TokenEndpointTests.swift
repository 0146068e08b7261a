import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("Tokens")
struct TokenEndpointTests {
  private let service: ServiceBench
  private let device: MintedDevice
  private let count = SignCounter()
  private var bench: GateBench { service.bench }

  init() async throws {
    service = try ServiceBench(GateBench())
    device = try await service.bench.registeredDevice()
  }

  /// Returns the headers of an assertion and a proof over the same nonce.
  private func proofs(
    of device: MintedDevice? = nil, key: P256PrivateKey? = nil, _ alter: (inout ProofMint) throws -> Void = { _ in }
  ) throws -> (headers: [(String, String)], proof: String) {
    let nonce = try bench.nonce()
    var mint = try ProofMint(key: key, nonce: nonce.text, at: bench.clock.now)
    try alter(&mint)
    return (try (device ?? self.device).fields(over: nonce, count: count.next()), try mint.text)
  }

  private func answer(to request: Request, by service: ServiceBench? = nil) async throws -> Response {
    try await (service ?? self.service).answer(to: request)
  }

  private func code(_ response: Response) -> String? { response.headers.first("X-Attest-Error") }

  private func claims(_ response: Response) throws -> (header: [String: JSONValue], claims: [String: JSONValue]) {
    let body = try JSONValue.object(response.body)
    #expect(body["token_type"] == .text("DPoP") && body["expires_in"] == .number(300) && body.count == 3)
    guard case .text(let token)? = body["access_token"] else { throw ServiceBench.Unexpected.relayed }
    let parts = try token.split(separator: ".").map { try #require(Base64URL.decode($0)) }
    let signed = token[..<(token.lastIndex(of: ".") ?? token.endIndex)]
    let key = try #require(bench.identityKeys.signing(at: bench.clock.now)).privateKey.publicKey
    #expect(key.isValidES256Signature(parts[2], for: Array(signed.utf8)))
    return (try JSONValue.object(parts[0]), try JSONValue.object(parts[1]))
  }

  @Test("A proof and an assertion buy a token with exactly the documented claims")
  func issued() async throws {
    let key = try P256PrivateKey()
    let (headers, proof) = try proofs(key: key)
    let response = try await answer(to: .token(headers, proof: proof))
    #expect(response.status == 200 && response.headers.values(of: "Cache-Control") == ["no-store"])
    #expect(response.headers.first("Content-Type") == "application/json")
    let (header, claims) = try claims(response)
    let kid = try #require(bench.identityKeys.signing(at: bench.clock.now)).kid
    #expect(header == ["alg": .text("ES256"), "typ": .text("at+jwt"), "kid": .text(kid)])
    let now = bench.clock.now.seconds
    var expected: [String: JSONValue] = [
      "iss": .text("gate"), "aud": .text("https://api.example"), "sub": .text(KeyHash(of: device.keyID).text),
      "client_id": .text(GateBench.appID), "iat": .number(now), "exp": .number(now + 300),
      "method": .text("app-attest"), "app": .text(GateBench.appID), "env": .text("development"), "counter": .number(1),
      "cnf": .object(["jkt": .text(JSONWebKey(key.publicKey).thumbprint)]),
    ]
    expected["jti"] = claims["jti"]
    expected["category"] = claims["category"]
    #expect(claims == expected && claims["jti"]?.bytes?.count == 16)
    let line = try #require(try service.log.lines.last)
    #expect(line["message"] == "token issued" && line["audience"] == "https://api.example")
    #expect(line["key"] == KeyHash(of: device.keyID).short && line["token_id"].map(JSONValue.text) == claims["jti"])
    #expect(try !service.log.text.contains(proof))
    #expect(service.metrics.tokenCounts == (1, 0))
  }

  @Test("An audience is compared as bytes: one that is canonically equivalent is unknown")
  func equivalentAudience() async throws {
    let issuer = TokenIssuer(issuer: "gate", audiences: ["\u{212A}"], life: .seconds(300), keys: bench.identityKeys)
    #expect(issuer.serves("\u{212A}") && !issuer.serves("K"))
    let (headers, proof) = try proofs()
    let marks = "audience=" + String(repeating: "%CC%81", count: 600)
    let response = try await answer(to: .token(headers, proof: proof, body: marks))
    #expect(code(response) == "audience_refused")
    // The log has a bounded part of it, although it is one character.
    #expect(try #require(try service.log.lines.last?["detail"]).utf8.count == 400)
  }

  @Test("Each audience of the configuration gets a token, and no other")
  func audiences() async throws {
    for (body, status) in [("audience=ledger", 200), ("audience=https://api.example", 200), ("audience=upstream", 403)]
    {
      let (headers, proof) = try proofs()
      #expect(try await answer(to: .token(headers, proof: proof, body: body)).status == status, "\(body)")
    }
  }

  @Test("Without tokens in the configuration, nothing is at the path", arguments: ["GET", "POST"])
  func off(_ method: String) async throws {
    let service = try ServiceBench(GateBench(), issuesTokens: false)
    let response = try await answer(to: .plain(method, "/attest/token"), by: service)
    #expect(response.status == 404 && code(response) == "not_found")
  }

  @Test("Only POST is answered", arguments: ["GET", "PUT", "HEAD", "OPTIONS"])
  func methods(_ method: String) async throws {
    let response = try await answer(to: .plain(method, "/attest/token"))
    #expect(response.status == 405 && response.headers.first("Allow") == "POST")
  }

  @Test("A wrong proof spends nothing: the same assertion with a right proof is admitted")
  func unspent() async throws {
    let nonce = try bench.nonce()
    let headers = try device.fields(over: nonce, count: 1)
    let good = try ProofMint(nonce: nonce.text, at: bench.clock.now)
    var bad = good
    bad.signer = try P256PrivateKey()
    for request in [
      Request.token(headers, proof: try bad.text), .token(headers, proof: nil),
      .token(headers, proof: try good.text, body: "audience=other"), .token(headers, proof: try good.text, body: ""),
    ] {
      #expect(try await answer(to: request).status != 200)
    }
    #expect(try await answer(to: .token(headers, proof: try good.text)).status == 200)
  }

  @Test("A proof is used once: its nonce is spent with the assertion")
  func replayed() async throws {
    let nonce = try bench.nonce()
    let proof = try ProofMint(nonce: nonce.text, at: bench.clock.now).text
    #expect(try await answer(to: .token(device.fields(over: nonce, count: 1), proof: proof)).status == 200)
    let again = try await answer(to: .token(device.fields(over: nonce, count: 2), proof: proof))
    #expect(again.status == 400 && code(again) == "nonce_used")
  }

  @Test("Of fifty simultaneous requests with one nonce, one gets a token")
  func raced() async throws {
    let nonce = try bench.nonce()
    let proof = try ProofMint(nonce: nonce.text, at: bench.clock.now).text
    let requests = try (1...50).map { Request.token(try device.fields(over: nonce, count: $0), proof: proof) }
    let statuses = try await withThrowingTaskGroup(of: Int.self, returning: [Int].self) { group in
      for request in requests { group.addTask { try await service.answer(to: request).status } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.count { $0 == 200 } == 1 && statuses.count { $0 == 400 } == 49)
  }

  @Test("A proof over another nonce than the assertion's is refused, although both nonces are valid")
  func otherNonce() async throws {
    let other = try bench.nonce()
    let (headers, proof) = try proofs { $0.claims["nonce"] = "\"\(other.text)\"" }
    let response = try await answer(to: .token(headers, proof: proof))
    #expect(response.status == 400 && code(response) == "dpop_refused")
  }

  @Test("A proof without a nonce that counts gets a new one, with which the client's next attempt succeeds")
  func nonceByAnswer() async throws {
    let used = try bench.nonce()
    let first = try ProofMint(nonce: used.text, at: bench.clock.now).text
    #expect(try await answer(to: .token(device.fields(over: used, count: count.next()), proof: first)).status == 200)
    let (fresh, without) = try proofs { $0.claims["nonce"] = nil }
    for request in [
      Request.token(try device.fields(over: used, count: 9), proof: first), .token(fresh, proof: without),
      // A client that begins, by RFC 9449 section 8, and one whose assertion lacks its nonce.
      .token([], proof: without), .token(fresh.without(.nonce), proof: without),
    ] {
      let response = try await answer(to: request)
      let body = try JSONValue.object(response.body)
      #expect(response.status == 400 && body["error"] == .text("use_dpop_nonce"))
      let nonce = try #require(response.headers.first("DPoP-Nonce").flatMap { Nonce(text: $0) })
      let proof = try ProofMint(nonce: nonce.text, at: bench.clock.now).text
      let headers = try device.fields(over: nonce, count: count.next() + 10)
      #expect(try await answer(to: .token(headers, proof: proof)).status == 200)
    }
  }

  @Test("A client that begins gets a nonce although the gate has not loaded its challenge keys, as after a reload")
  func nonceAfterReload() async throws {
    let (_, without) = try proofs { $0.claims["nonce"] = nil }
    let fresh = Challenges(storage: bench.store, clock: bench.clock.wallClock)
    #expect(!fresh.isReady)
    let response = try await answer(
      to: .token([], proof: without), by: ServiceBench(bench, tokenChallenges: fresh))
    #expect(try response.status == 400 && JSONValue.object(response.body)["error"] == .text("use_dpop_nonce"))
    let nonce = try #require(response.headers.first("DPoP-Nonce").flatMap { Nonce(text: $0) })
    #expect(throws: Never.self) { try fresh.check(nonce, at: bench.clock.now) }
    let unavailable = Challenges(storage: SQLiteStore(path: "/nonexistent/state.db"), clock: bench.clock.wallClock)
    let refused = try await answer(
      to: .token([], proof: without), by: ServiceBench(bench, tokenChallenges: unavailable))
    #expect(refused.status == 503 && code(refused) == "store_unavailable")
    #expect(try JSONValue.object(refused.body)["error"] == .text("temporarily_unavailable"))
  }

  @Test(
    "Other refusals have the error of OAuth, and no nonce",
    arguments: [("audience=other", "invalid_target"), ("", "invalid_request"), ("client_id=x", "invalid_target")])
  func errors(_ form: String, _ error: String) async throws {
    let (headers, proof) = try proofs()
    let response = try await answer(to: .token(headers, proof: proof, body: form))
    #expect(try JSONValue.object(response.body)["error"] == .text(error))
    #expect(response.headers.first("DPoP-Nonce") == nil)
    let (forged, other) = try proofs { $0.signer = try P256PrivateKey() }
    let refused = try await answer(to: .token(forged, proof: other))
    #expect(try JSONValue.object(refused.body)["error"] == .text("invalid_dpop_proof"))
    let stranger = try proofs(of: bench.device())
    let unknown = try await answer(to: .token(stranger.headers, proof: stranger.proof))
    #expect(try JSONValue.object(unknown.body)["error"] == .text("invalid_client"))
  }

  @Test(
    "A request that does not reach the endpoint is refused in the form of OAuth, too",
    arguments: [
      (RequestError.bodyTooLarge(limit: 65536), 413), (.malformedBody(rule: "a chunk"), 400),
      (.unacceptableField(rule: "an expectation"), 400), (.headTooLarge(rule: "more than 100 fields"), 431),
    ])
  func unreached(_ fault: RequestError, status: Int) throws {
    for path in ["/attest/token", "/attest/register"] {
      let answer = service.responder.response(
        to: fault, at: path, of: nil, id: Request.id, from: ServiceBench.peer)
      #expect(answer.status == status && answer.headers.contains("X-Attest-Error"))
      guard path == "/attest/token" else {
        #expect(answer.headers.first("Content-Type")?.hasPrefix("text/plain") == true)
        continue
      }
      #expect(answer.headers.values(of: "Content-Type") == ["application/json"])
      let body = try JSONValue.object(answer.body)
      #expect(body["error"] == .text("invalid_request") && body["request_id"] == .text(Request.id))
    }
    let late = service.responder.responseWithoutDecision(
      on: .plain("POST", "/attest/token"), from: ServiceBench.peer)
    #expect(try JSONValue.object(late.body)["error"] == .text("temporarily_unavailable"))
  }

  @Test("A client attestation has the members of the draft, and the key of the proof without a private part")
  func attestation() async throws {
    let key = try P256PrivateKey()
    let (headers, proof) = try proofs(key: key)
    let response = try await answer(to: .token(headers, proof: proof, body: "client_id=wallet"))
    let body = try JSONValue.object(response.body)
    guard case .text(let attestation)? = body["client_attestation"] else { throw ServiceBench.Unexpected.relayed }
    #expect(response.status == 200 && body["expires_in"] == .number(3600) && body.count == 2)
    let parts = try attestation.split(separator: ".").map { try #require(Base64URL.decode($0)) }
    let signing = try #require(bench.identityKeys.signing(at: bench.clock.now))
    #expect(
      try JSONValue.object(parts[0]) == [
        "alg": .text("ES256"), "typ": .text("oauth-client-attestation+jwt"), "kid": .text(signing.kid),
      ])
    let jwk = JSONWebKey(key.publicKey)
    let now = bench.clock.now.seconds
    #expect(
      try JSONValue.object(parts[1]) == [
        "iss": .text("gate"), "sub": .text("wallet"), "iat": .number(now), "exp": .number(now + 3600),
        "wallet_name": .text("Example \"W\""),
        "cnf": .object([
          "jwk": .object(["kty": .text("EC"), "crv": .text("P-256"), "x": .text(jwk.x), "y": .text(jwk.y)])
        ]),
      ])
    let signed = attestation[..<(attestation.lastIndex(of: ".") ?? attestation.endIndex)]
    #expect(signing.privateKey.publicKey.isValidES256Signature(parts[2], for: Array(signed.utf8)))
    let line = try #require(try service.log.lines.last)
    #expect(line["message"] == "client attestation issued" && line["client_id"] == "wallet")
  }

  @Test("An attestation ends when its key is no longer published, also if the overlap was made longer meanwhile")
  func retiringKey() async throws {
    // The overlap was shorter than an attestation lives now.
    #expect(try await bench.identityKeys.rotate(overlap: .seconds(300)))
    for (wait, life) in [(Duration.seconds(240), Int64(360)), (.seconds(60), 3600)] {
      bench.clock.advance(by: wait)
      let now = bench.clock.now.seconds
      let (headers, proof) = try proofs()
      let response = try await answer(to: .token(headers, proof: proof, body: "client_id=wallet"))
      let body = try JSONValue.object(response.body)
      guard case .text(let attestation)? = body["client_attestation"] else { throw ServiceBench.Unexpected.relayed }
      let parts = try attestation.split(separator: ".").map { try #require(Base64URL.decode($0)) }
      #expect(try JSONValue.object(parts[1])["exp"] == .number(now + life))
      #expect(body["expires_in"] == .number(life))
    }
  }

  @Test("An attestation lives a day at most, whatever is configured")
  func longestAttestation() {
    #expect(ClientAttester.Client(id: "a", apps: [], life: .seconds(90_000)).life == .seconds(86_400))
  }

  @Test("The proof names the host that the client asked for, or the configured URL")
  func host() async throws {
    let (headers, proof) = try proofs { $0.claims["htu"] = "\"https://public.example/gate/token\"" }
    #expect(code(try await answer(to: .token(headers, proof: proof))) == "dpop_refused")
    let moved = try ServiceBench(bench, tokenURL: "https://public.example/gate/token")
    #expect(try await answer(to: .token(headers, proof: proof), by: moved).status == 200)
    let (other, otherProof) = try proofs()
    #expect(code(try await answer(to: .token(other, proof: otherProof), by: moved)) == "dpop_refused")
  }

  @Test("A revoked key gets no token and no client attestation, and keeps those that it has until they end")
  func revoked() async throws {
    let (headers, proof) = try proofs()
    #expect(try await answer(to: .token(headers, proof: proof)).status == 200)
    #expect(try await bench.store.revoke(device.keyID, at: bench.clock.now))
    for request in [nil, "client_id=wallet"] {
      let (next, nextProof) = try proofs()
      let response = try await answer(
        to: request.map { .token(next, proof: nextProof, body: $0) } ?? .token(next, proof: nextProof))
      #expect(response.status == 403 && code(response) == "key_revoked")
    }
  }

  @Test("An unknown key and a wrong signature get the same answer")
  func unknownKey() async throws {
    let stranger = try bench.device()
    let (unknown, proof) = try proofs(of: stranger)
    var (forged, secondProof) = try proofs()
    forged = forged.replacing(
      .data, with: try #require(try proofs(of: stranger).headers.first { $0.0.hasSuffix("Data") }).1)
    for request in [Request.token(unknown, proof: proof), .token(forged, proof: secondProof)] {
      let response = try await answer(to: request)
      #expect(response.status == 401 && code(response) == "key_refused" && response.closes)
    }
    secondProof = ""
  }

  @Test("A client certificate gets no token, since all debug builds share it")
  func certificate() async throws {
    let certificate = PeerCertificate(der: [1], fingerprint: SecureRandom.bytes(32), subject: "CN=MudApp Debug Client")
    let peer = Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate)
    let (_, proof) = try proofs()
    let response = try await service.answer(to: .token([], proof: proof), from: peer)
    #expect(response.status == 401 && code(response) == "no_credentials")
  }

  @Test("In monitor mode, a client that the rules refuse gets no token, and a genuine one does")
  func monitor() async throws {
    let bench = try GateBench(enforcement: .monitor)
    let service = try ServiceBench(bench)
    let known = try await bench.registeredDevice()
    for (device, status) in [(try bench.device(), 401), (known, 200)] {
      let nonce = try bench.nonce()
      let proof = try ProofMint(nonce: nonce.text, at: bench.clock.now).text
      let request = Request.token(try device.fields(over: nonce, count: 1), proof: proof)
      #expect(try await service.answer(to: request).status == status)
    }
  }

  @Test("A request that fails after a valid proof closes its connection, and one that fails before does not")
  func closing() async throws {
    let (headers, proof) = try proofs()
    let bare = headers.without(.data)
    #expect(try await answer(to: .token(bare, proof: proof)).closes)
    #expect(try await !answer(to: .token(bare, proof: nil)).closes)
    #expect(try await !answer(to: .token(headers, proof: proof, body: "audience=other")).closes)
    let (second, forged) = try proofs { $0.signer = try P256PrivateKey() }
    #expect(try await answer(to: .token(second, proof: forged)).closes)
  }

  @Test("Token requests count against the limits of upgrades, of the address and of the key")
  func limits() async throws {
    for isOfKey in [true, false] {
      var limits = RequestLimits()
      let rate = try #require(Rate(1, every: .seconds(60)))
      if isOfKey { limits.upgradesPerKey = rate } else { limits.upgradesPerAddress = rate }
      let limited = try ServiceBench(bench, limiter: RequestLimiter(limits))
      var statuses: [Int] = []
      for _ in 0..<2 {
        let (headers, proof) = try proofs()
        statuses.append(try await answer(to: .token(headers, proof: proof), by: limited).status)
      }
      #expect(statuses == [200, 429])
    }
  }

  @Test("A token lives five minutes at most, whatever is asked for")
  func longest() {
    let issuer = TokenIssuer(issuer: "gate", audiences: ["x"], life: .seconds(301), keys: bench.identityKeys)
    #expect(issuer.life == .seconds(300))
  }

  @Test("A token is no identity assertion, and an assertion is no token: type and audience differ")
  func confusion() async throws {
    let (headers, proof) = try proofs()
    let (header, claims) = try claims(try await answer(to: .token(headers, proof: proof)))
    let verified = try await answer(
      to: .plain("GET", "/attest/verify", device.fields(over: bench.nonce(), count: count.next())))
    let assertion = try #require(verified.headers.first("X-Attest-Assertion")).split(separator: ".")
    let otherHeader = try JSONValue.object(try #require(Base64URL.decode(assertion[0])))
    let otherClaims = try JSONValue.object(try #require(Base64URL.decode(assertion[1])))
    #expect(header["kid"] == otherHeader["kid"], "the same key signs both")
    #expect(header["typ"] != otherHeader["typ"] && claims["aud"] != otherClaims["aud"])
    #expect(otherClaims["cnf"] == nil && claims["sid"] == nil && claims["client_ip"] == nil)
  }
}
