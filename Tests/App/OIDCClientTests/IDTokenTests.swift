import Foundation
import OIDCClient
import TestSupport
import Testing

/// Tokens and keys that Python's PyJWT and cryptography made.
private struct Minted: Decodable {
  struct Case: Decodable {
    let name: String
    let code: String?
    let token: String
    let keys: String
  }

  let cases: [Case]

  static func make() async throws -> [Case] {
    let run = try await ChildProcess.run(
      "/usr/bin/python3", [ProjectFile.path("Tests/App/Programs/id_tokens.py")])
    try #require(run.exit == .code(0), "\(run.errors)")
    return try JSONDecoder().decode(Minted.self, from: Data(run.output.joined().utf8)).cases
  }
}

/// Those of the program `id_tokens.py`.
private func expectation() -> IDTokenExpectation {
  IDTokenExpectation(
    issuer: "https://login.example.com", clientID: "app", nonce: "n-0S6_WzA2Mj", accessToken: "access token",
    time: Date(timeIntervalSince1970: 1_800_000_000))
}

@Suite("ID tokens", .timeLimit(.minutes(2)))
struct IDTokenTests {
  @Test("C-011, C-016 Each broken rule has its own code, and the token without the fault is accepted")
  func rules() async throws {
    let cases = try await Minted.make()
    #expect(cases.count >= 100)
    for item in cases {
      var code: String?
      do throws(IDTokenRejection) {
        let token = try IDToken(item.token)
        guard let keys = try? ProviderKeys(json: Array(item.keys.utf8)) else {
          Issue.record("\(item.name): the keys")
          continue
        }
        let verifier = IDTokenVerifier(keys: keys)
        let findings = await verifier.findings(token, as: expectation())
        #expect(findings.count == 12)
        // One thing is wrong, so there is one code; two rules have that of an algorithm.
        #expect(
          Set(findings.compactMap(\.rejection?.code)).count == (item.code == nil ? 0 : 1), "\(item.name): \(findings)")
        try await verifier.verify(token, as: expectation())
      } catch {
        code = error.code
      }
      #expect(code == item.code, "\(item.name)")
    }
  }

  @Test func `a refresh needs no nonce, and keeps its subject`() async throws {
    let item = try #require(try await Minted.make().first { $0.name == "RS256" })
    let verifier = IDTokenVerifier(keys: try ProviderKeys(json: Array(item.keys.utf8)))
    let token = try IDToken(item.token)
    var expected = expectation()
    expected.nonce = nil
    expected.subject = token.claims.subject
    try await verifier.verify(token, as: expected)
    expected.subject = "another"
    await #expect(throws: IDTokenRejection.subject) { try await verifier.verify(token, as: expected) }
  }

  @Test func `a document of keys that is too large or malformed is refused`() {
    for json in [
      "", "[]", "{}", #"{"keys":5}"#, #"{"keys":[]} "# + String(repeating: " ", count: ProviderKeys.largest),
    ] {
      #expect(throws: OIDCError.self) { try ProviderKeys(json: Array(json.utf8)) }
    }
    #expect(throws: Never.self) {
      try ProviderKeys(json: Array(#"{"keys":[{"kty":"oct"},{"kty":"RSA","n":5},7]}"#.utf8))
    }
  }

  @Test func `no change of one byte of a token is accepted`() async throws {
    let item = try #require(try await Minted.make().first { $0.name == "ES256" })
    let verifier = IDTokenVerifier(keys: try ProviderKeys(json: Array(item.keys.utf8)))
    let bytes = Array(item.token.utf8)
    for index in bytes.indices {
      var changed = bytes
      changed[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      await #expect(throws: IDTokenRejection.self, "\(index)") {
        try await verifier.verify(IDToken(String(decoding: changed, as: UTF8.self)), as: expectation())
      }
    }
  }
}

@Suite("Proof Key for Code Exchange")
struct PKCETests {
  @Test func `the challenge is that of RFC 7636, appendix B`() {
    #expect(
      PKCE(verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").challenge
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    let verifiers = (0..<100).map { _ in PKCE(randomBytes: SignInDependencies.systemRandom(32)).verifier }
    #expect(Set(verifiers).count == 100 && verifiers.allSatisfy { $0.utf8.count == 43 })
  }
}
