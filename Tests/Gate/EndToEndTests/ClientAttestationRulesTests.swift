import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing
import Transport

/// Needs no gate: the attester's key is the test's, so that each claim of an attestation can be changed alone.
@Suite("The documented verifier of client attestations, rule by rule", .timeLimit(.minutes(3)))
struct ClientAttestationRulesTests {
  private static let issuer = "https://as.example.com"
  private static let url = "\(issuer)/token"
  private static let challenged = "use_attestation_challenge: the proof has another challenge, or none"

  /// An attestation with its proof, both valid unless a case changes them. A claim with `nil` is left out.
  private struct Call {
    var attestation: [String: Any?]
    var attestationHeader: [String: Any?] = ["typ": "oauth-client-attestation+jwt", "alg": "ES256", "kid": "a1"]
    var proof: [String: Any?]
    var proofHeader: [String: Any?] = ["typ": "oauth-client-attestation-pop+jwt", "alg": "ES256"]
    var challenge: String?
    let isCombined: Bool

    init(client: P256PrivateKey, now: Int64, isCombined: Bool) throws {
      attestation = [
        "iss": "sallyport", "sub": "wallet", "iat": now, "exp": now + 600, "cnf": ["jwk": Self.jwk(client)],
      ]
      proof = ["iat": now, "jti": Base64URL.encode(SecureRandom.bytes(16))]
      self.isCombined = isCombined
      if isCombined {
        proofHeader = ["typ": "dpop+jwt", "alg": "ES256", "jwk": Self.jwk(client)]
        proof["htm"] = "POST"
        proof["htu"] = url
      } else {
        proof["aud"] = issuer
      }
    }

    /// Returns the call as one line of JSON for the verifier.
    func line(attester: P256PrivateKey, client: P256PrivateKey) throws -> String {
      let members: [String: Any?] = [
        "attestation": try Self.jwt(attestationHeader, attestation, by: attester),
        "proof": try Self.jwt(proofHeader, proof, by: client), "challenge": challenge,
        "dpop": isCombined ? ["POST", url] : nil,
      ]
      return String(decoding: try Self.json(members), as: UTF8.self) + "\n"
    }

    static func jwk(_ key: P256PrivateKey, curve: String = "P-256", more: [String: String] = [:]) -> [String: String] {
      let point = key.publicKey.x963
      return more.merging([
        "kty": "EC", "crv": curve, "x": Base64URL.encode(point[1..<33]), "y": Base64URL.encode(point[33..<65]),
      ]) { $1 }
    }

    private static func jwt(_ header: [String: Any?], _ claims: [String: Any?], by key: P256PrivateKey) throws -> String
    {
      let text = try [header, claims].map { Base64URL.encode(Array(try json($0))) }.joined(separator: ".")
      return text + "." + Base64URL.encode(try key.es256Signature(for: Array(text.utf8)))
    }

    private static func json(_ members: [String: Any?]) throws -> Data {
      try JSONSerialization.data(withJSONObject: members.compactMapValues(\.self))
    }
  }

  /// The documented verifier with an attester and a client of its own.
  private struct Bench {
    let attester: P256PrivateKey
    let client: P256PrivateKey
    let now = Timestamp.now().seconds

    init() throws { (attester, client) = (try P256PrivateKey(), try P256PrivateKey()) }

    /// Returns the refusal of each call, `nil` for an accepted one.
    func refusals(_ lines: [String]) async throws -> [String?] {
      try await Places.withTemporaryFolder { folder in
        let jwks = ["keys": [Call.jwk(attester, more: ["kid": "a1"])]]
        try JSONSerialization.data(withJSONObject: jwks).write(to: URL(filePath: folder + "/jwks.json"))
        let path = folder + "/clients.py"
        try Guide.service("ClientAttestations").block("python").write(toFile: path, atomically: true, encoding: .utf8)
        let (exit, output, errors) = try await ChildProcess.run(
          Places.tool("python3"), [path, "file://\(folder)/jwks.json", "sallyport", issuer],
          input: Array(lines.joined().utf8), within: .seconds(60))
        #expect(exit == .code(0), "\(errors)")
        return try output.map {
          let answer = try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
          let refusal = answer["refused"] as? String
          #expect(refusal != nil || answer["client_id"] as? String == "wallet", "\(answer)")
          return refusal
        }
      }
    }

    /// Expects that each change alone is refused with its text, and that the call without a change is accepted.
    func expect(
      isCombined: Bool = false, _ cases: [(name: String, refusal: String, change: (inout Call) -> Void)]
    ) async throws {
      let changes: [(inout Call) -> Void] = [{ _ in }] + cases.map(\.change)
      let results = try await refusals(
        try changes.map { change in
          var call = try Call(client: client, now: now, isCombined: isCombined)
          change(&call)
          return try call.line(attester: attester, client: client)
        })
      try #require(results.count == changes.count, "\(results)")
      #expect(results[0] == nil)
      for (result, broken) in zip(results.dropFirst(), cases) {
        #expect(result == broken.refusal, "\(broken.name)")
      }
    }
  }

  @Test("An expired attestation is refused, and one with any other rule broken alone")
  func attestation() async throws {
    let bench = try Bench()
    let now = bench.now
    let key = bench.client
    try await bench.expect([
      ("expired", "ExpiredSignatureError", { $0.attestation["exp"] = now - 60 }),
      ("without an end", "MissingRequiredClaimError", { $0.attestation.removeValue(forKey: "exp") }),
      ("of another attester", "InvalidIssuerError", { $0.attestation["iss"] = "other" }),
      ("without an attester", "MissingRequiredClaimError", { $0.attestation.removeValue(forKey: "iss") }),
      ("without a client id", "MissingRequiredClaimError", { $0.attestation.removeValue(forKey: "sub") }),
      ("without a time of issue", "MissingRequiredClaimError", { $0.attestation.removeValue(forKey: "iat") }),
      ("issued in an hour", "ImmatureSignatureError", { $0.attestation["iat"] = now + 3600 }),
      ("without a key", "MissingRequiredClaimError", { $0.attestation.removeValue(forKey: "cnf") }),
      (
        "with an empty cnf", "the attestation or its proof is malformed", { $0.attestation["cnf"] = [String: String]() }
      ),
      (
        "with a private key", "the key is not a public key on P-256",
        { $0.attestation["cnf"] = ["jwk": Call.jwk(key, more: ["d": "AA"])] }
      ),
      (
        "with a key on P-384", "the key is not a public key on P-256",
        { $0.attestation["cnf"] = ["jwk": Call.jwk(key, curve: "P-384")] }
      ),
      (
        "with an RSA key", "the key is not a public key on P-256",
        { $0.attestation["cnf"] = ["jwk": ["kty": "RSA", "crv": "", "n": "AQ", "e": "AQAB"]] }
      ),
      (
        "by a key that the attester does not publish", "use_fresh_attestation: the attester has no such key",
        { $0.attestationHeader["kid"] = "a2" }
      ),
      ("unsigned", "InvalidAlgorithmError", { $0.attestationHeader["alg"] = "none" }),
      ("with a shared secret", "InvalidAlgorithmError", { $0.attestationHeader["alg"] = "HS256" }),
      ("of another type", "another type of JWT", { $0.attestationHeader["typ"] = "JWT" }),
      ("of 9 KB", "too long", { $0.attestation["note"] = String(repeating: "a", count: 9000) }),
    ])
  }

  @Test("A proof of its own is refused with any rule broken alone")
  func proof() async throws {
    let bench = try Bench()
    let now = bench.now
    try await bench.expect([
      ("without an id", "MissingRequiredClaimError", { $0.proof.removeValue(forKey: "jti") }),
      ("with a long id", "the proof is too old", { $0.proof["jti"] = String(repeating: "a", count: 129) }),
      ("without a time", "MissingRequiredClaimError", { $0.proof.removeValue(forKey: "iat") }),
      ("made 90 seconds ago", "the proof is too old", { $0.proof["iat"] = now - 90 }),
      ("made in 90 seconds", "ImmatureSignatureError", { $0.proof["iat"] = now + 90 }),
      ("unsigned", "InvalidAlgorithmError", { $0.proofHeader["alg"] = "none" }),
      ("with a shared secret", "InvalidAlgorithmError", { $0.proofHeader["alg"] = "HS256" }),
      ("without the challenge", Self.challenged, { $0.challenge = "c-1" }),
      ("with an unwanted challenge", Self.challenged, { $0.proof["challenge"] = "c-1" }),
      ("of the other variant", "another type of JWT", { $0.proofHeader["typ"] = "dpop+jwt" }),
    ])
  }

  @Test("A DPoP proof is refused with any rule broken alone")
  func combined() async throws {
    let bench = try Bench()
    let other = Call.jwk(try P256PrivateKey())
    try await bench.expect(
      isCombined: true,
      [
        ("for another method", "the DPoP proof is for another request", { $0.proof["htm"] = "GET" }),
        ("for another URL", "the DPoP proof is for another request", { $0.proof["htu"] = "\(Self.issuer)/par" }),
        ("without a method", "the attestation or its proof is malformed", { $0.proof.removeValue(forKey: "htm") }),
        ("of another key", "the DPoP proof is by another key", { $0.proofHeader["jwk"] = other }),
        ("without the nonce", Self.challenged, { $0.challenge = "n-1" }),
        (
          "with another nonce", Self.challenged,
          {
            $0.challenge = "n-1"
            $0.proof["nonce"] = "n-2"
          }
        ),
        ("of the other variant", "another type of JWT", { $0.proofHeader["typ"] = "oauth-client-attestation-pop+jwt" }),
      ])
  }
}
