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
    "A claim or a parameter that is there twice is refused, also under an escape or deep inside",
    arguments: [
      (#"{"sub":"first","sub":"last"}"#, #"{"alg":"ES256"}"#, false),
      (#"{"sub":"first","\u0073ub" :"last"}"#, #"{"alg":"ES256"}"#, false),
      (#"{"sub":"a","x":[{"y":1,"y":2}]}"#, #"{"alg":"ES256"}"#, false),
      (#"{"sub":"a"}"#, #"{"alg":"ES256","alg":"none"}"#, false),
      (#"{"sub":"a","x":{"sub":"b"},"y":["sub","sub"],"z":[{"a":1},{"a":1}]}"#, #"{"alg":"ES256"}"#, true),
      (#"{"sub":"a","\\":1,"\"":2,"stra\u00dfe":3}"#, #"{"alg":"ES256"}"#, true),
    ])
  func twice(claims: String, header: String, isRead: Bool) {
    do throws(IDTokenRejection) {
      _ = try IDToken(forged(claims, header: header))
      #expect(isRead)
    } catch {
      #expect(!isRead && "\(error)".contains(" twice"), "\(error)")
    }
  }

  @Test("Google's issuer may come without its scheme, and no other")
  func google() async throws {
    func rejection(_ issuer: String, of expected: String) async throws -> IDTokenRejection? {
      let expectation = IDTokenExpectation(
        issuer: expected, clientID: "app", time: Date(timeIntervalSince1970: 1_800_000_000))
      let keys = try ProviderKeys(json: Array(Minter().jwks.utf8))
      let token = try IDToken(forged(#"{"iss":"\#(issuer)","sub":"a"}"#))
      return await IDTokenVerifier(keys: keys).findings(token, as: expectation).compactMap(\.rejection).first {
        if case .issuer = $0 { true } else { false }
      }
    }
    let google = "https://accounts.google.com"
    #expect(try await rejection(google, of: google) == nil)
    #expect(try await rejection("accounts.google.com", of: google) == nil)
    #expect(try await rejection("accounts.google.com.evil.example", of: google) != nil)
    #expect(try await rejection("accounts.google.com", of: "https://login.example.com") != nil)
    #expect(try await rejection("login.example.com", of: "https://login.example.com") != nil)
  }

  /// Names that would cost time with the square of their length, or are too many.
  private static let unbounded = [
    #"{"a\#(String(repeating: "\u{301}", count: 200))":1,"alg":"ES256"}"#,
    #"{"\#(String(repeating: #"\u0301"#, count: 50))":1,"alg":"ES256"}"#,
    "{" + (0..<9000).map { "\"\($0)\":0," }.joined() + #""alg":"ES256"}"#,
  ]

  @Test("Members of a token are bounded in length and number before they are names", arguments: unbounded)
  func bounds(text: String) {
    #expect(throws: IDTokenRejection.self) { try IDToken(forged("{}", header: text)) }
    #expect(throws: IDTokenRejection.self) { try IDToken(forged(text)) }
    #expect(throws: OIDCError.self) { try ProviderKeys(json: Array(#"{"keys":[\#(text)]}"#.utf8)) }
    #expect(throws: OIDCError.self) {
      try ProviderMetadata(json: Array(text.utf8), issuer: "https://login.example.com")
    }
  }

  @Test(
    "Texts of a header that are compared have the length of a name",
    arguments: [
      #"{"alg":"\#(String(repeating: "\u{323}", count: 100))"}"#,
      #"{"alg":"ES256","typ":"\#(String(repeating: "a", count: 129))"}"#,
      #"{"alg":"ES256","kid":"\#(String(repeating: "a", count: 1025))"}"#,
    ])
  func longTexts(header: String) {
    #expect(throws: IDTokenRejection.malformed("alg, typ or kid of its header is too long")) {
      try IDToken(forged("{}", header: header))
    }
  }

  @Test func `a combining mark hides no dot of a token and no sign of a query`() {
    let hidden = forged("{}").replacing(".", with: ".\u{301}", maxReplacements: 1)
    #expect(throws: IDTokenRejection.malformed("a part is not base64url without padding")) { try IDToken(hidden) }
    #expect(FormEncoding.decode("code=1&\u{301}code=2&state=3")?["code"] == "1")
    #expect(FormEncoding.decode("code=1&\u{301}x=&code=2") == nil)
    #expect(FormEncoding.decode("code=a+\u{301}b")?["code"] == "a \u{301}b")
    #expect(FormEncoding.values(of: "state", in: "state=\u{301}1&\u{301}&state=2") == ["\u{301}1", "2"])
  }

  @Test func `texts before a colon are counted as the decoder sees them, and all else is left to it`() {
    func isBounded(_ text: String) -> Bool { ProviderJSON.isBounded(Array(text.utf8)) }
    let longest = String(repeating: "a", count: ProviderJSON.longestName)
    #expect(isBounded(#"{"\#(longest)" : ["\#(longest)\#(longest)", {"b":"\"\\"}]}"#))
    #expect(!isBounded(#"{"\#(longest)a" \#n:1}"#))
    #expect(!isBounded(#"{"x":"\"","\#(longest)\"":1}"#))
    let members = "{" + (0..<9).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
    #expect(ProviderJSON.isBounded(Array(members.utf8), members: 9))
    #expect(!ProviderJSON.isBounded(Array(members.utf8), members: 8))
    let claims = "{" + (0...ProviderJSON.mostTokenMembers).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
    #expect(throws: IDTokenRejection.self) { try IDToken(forged(claims)) }
    for text in ["", "\"", "{\"", #"{"a\"#, #"{"a""#, #"{"a":"#] { #expect(isBounded(text)) }
  }

  @Test func `texts are compared as bytes: what only looks the same is another one`() async throws {
    let (minter, now) = (Minter(), Date(timeIntervalSince1970: 1_800_000_000))
    let verifier = IDTokenVerifier(keys: try ProviderKeys(json: Array(minter.jwks.utf8)))
    var expected = IDTokenExpectation(issuer: "https://login.example.com", clientID: "app\u{E9}", time: now)
    let composed = try minter.token(at: now, subject: "ad\u{E9}", audience: "app\u{E9}")
    let decomposed = try minter.token(at: now, subject: "ade\u{301}", audience: "app\u{E9}")
    expected.subject = "ad\u{E9}"
    try await verifier.verify(IDToken(composed), as: expected)
    await #expect(throws: IDTokenRejection.subject) { try await verifier.verify(IDToken(decomposed), as: expected) }
    let other = try minter.token(at: now, subject: "ad\u{E9}", audience: "appe\u{301}")
    await #expect(throws: IDTokenRejection.audience(["appe\u{301}"])) {
      try await verifier.verify(IDToken(other), as: expected)
    }
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
