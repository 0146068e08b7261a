import ByteCoding
import Foundation
import Testing

@testable import OIDCClient

@Suite("Hostile ID tokens")
struct HostileTokenTests {
  /// A token with a signature that no key made.
  private func forged(_ claims: String, header: String = #"{"alg":"ES256"}"#) -> String {
    [header, claims, "x"].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
  }

  private static let claims: [String] = [
    #"{"exp":1e300,"iat":1e300}"#, #"{"exp":-1e300,"iat":-1e300}"#, #"{"exp":9223372036854775808,"iat":0}"#,
    #"{"exp":1e999}"#, #"{"exp":null,"iat":null,"aud":null}"#, #"{"aud":[]}"#, #"{"aud":[null]}"#, #"{"aud":{"a":1}}"#,
    #"{"aud":"app","aud":"other"}"#, #"{"iss":"https://login.example.com\u0000"}"#, #"{"sub":"\ud800"}"#,
    #"{"x":"# + String(repeating: "[", count: 45_000), String(repeating: "[", count: 45_000),
    #"{"aud":["# + Array(repeating: "\"a\"", count: 10_000).joined(separator: ",") + "]}", "", "null",
  ]

  @Test("C-016 Claims that were made to break something are refused, and end no process", arguments: claims)
  func refused(claims: String) async throws {
    let keys = try ProviderKeys(json: Array(Minter().jwks.utf8))
    let expected = IDTokenExpectation(
      issuer: "https://login.example.com", clientID: "app", time: Date(timeIntervalSince1970: 1_800_000_000))
    await #expect(throws: IDTokenRejection.self) {
      try await IDTokenVerifier(keys: keys).verify(IDToken(forged(claims)), as: expected)
    }
    // As `explain` does it: every rule, for a token of any age.
    guard let token = try? IDToken(forged(claims)) else { return }
    var ofAnyAge = expected
    ofAnyAge.longestAge = .infinity
    #expect(await IDTokenVerifier(keys: keys).findings(token, as: ofAnyAge).contains { $0.rejection == .signature })
    #expect(!"\(token)".contains(token.text))
  }

  @Test(
    "C-016 A header that was made to break something is refused",
    arguments: [
      #"{"alg":"none"}"#, #"{"alg":"NONE"}"#, #"{"alg":""}"#, #"{"alg":"HS256"}"#, #"{"alg":"ES256\u0000"}"#,
      #"{"alg":["ES256"]}"#, #"{"alg":"ES256","crit":[]}"#, #"{"alg":"ES256","kid":5}"#, "{}", "[]",
      #"{"alg":"ES256","kid":"../../k1"}"#, #"{"alg":"ES256","jwk":{},"x":"# + String(repeating: "[", count: 20_000),
    ])
  func header(text: String) async throws {
    let keys = try ProviderKeys(json: Array(Minter().jwks.utf8))
    let rejection = await #expect(throws: IDTokenRejection.self) {
      try await keys.verify(IDToken(forged(#"{"sub":"ada"}"#, header: text)))
    }
    #expect(rejection != .signature)
  }
}
