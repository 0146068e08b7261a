import ByteCoding
import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

@Suite("Claims of the userinfo endpoint, and what an entry adds to requests", .timeLimit(.minutes(1)))
struct UserClaimsTests {
  private static let endpoint = #","userinfo_endpoint":"https://login.example.com/me""#

  /// The code of the error, or the subject.
  private func outcome(
    _ answer: HTTPResponse, user: User? = User(id: "ada", username: "ada", email: nil, displayName: nil)
  )
    async -> String
  {
    let transport = Discovery.transport(Self.endpoint, keys: { Minter().jwks }) { _, _ throws(TransportError) in answer
    }
    let bench = Bench(transport)
    let account = StoredAccount.sample(
      at: bench.clock.now, remaining: 300, refresh: nil, state: .settled, provider: .discovered(), user: user,
      idToken: nil)
    do throws(OIDCError) {
      return try await bench.client(.discovered()).userClaims(of: account).subject ?? "no subject"
    } catch {
      return error.code
    }
  }

  @Test(
    "Of plain claims, the subject is compared, and none is there twice",
    arguments: [
      (#"{"sub":"ada","name":"Ada"}"#, "ada"), (#"{"sub":"bob"}"#, "wrong_subject"), ("{}", "wrong_subject"),
      (#"{"sub":"Ada"}"#, "wrong_subject"), (#"{"sub":"ada","sub":"bob"}"#, "answer_malformed"),
      (#"{"sub":7}"#, "answer_malformed"), ("[]", "answer_malformed"), ("", "answer_malformed"),
      ("\u{FEFF}{", "answer_malformed"), (#"{"sub":"ad\u0061"}"#, "ada"),
    ])
  func plain(body: String, expected: String) async {
    #expect(await outcome(.json(body)) == expected)
  }

  @Test("Without an ID token there is no subject to compare; a status is reported, and what is no JWT is refused")
  func others() async {
    #expect(await outcome(.json(#"{"login":"ada"}"#), user: nil) == "no subject")
    #expect(await outcome(.json("{}", status: 401)) == "server_error")
    #expect(await outcome(.json("{}", status: 302)) == "redirect_refused")
    for body in ["x", "a.b.c", "a.b.c.d.e", #"{"sub":"ada"}"#] {
      #expect(await outcome(.json(body, [HTTPField("Content-Type", "application/jwt")])) == "token_malformed")
    }
  }

  @Test("A nonce is repeated once, and one that is too long is named", arguments: [1024, 1025])
  func nonce(bytes: Int) async throws {
    let nonce = HTTPField("DPoP-Nonce", String(repeating: "n", count: bytes))
    let transport = Discovery.transport(Self.endpoint, keys: { "" }) { _, number in
      number == 2 ? .json("", status: 401, [nonce]) : .json(#"{"sub":"ada"}"#)
    }
    let bench = Bench(transport)
    let account = StoredAccount.sample(at: bench.clock.now, provider: .discovered(), dpopKey: DPoPKey())
    do throws(OIDCError) {
      let claims = try await bench.client(.discovered()).userClaims(of: account)
      #expect(claims.subject == "ada" && bytes == 1024)
    } catch {
      #expect("\(error)".hasSuffix("the userinfo endpoint: DPoP-Nonce is longer than 1024 bytes") && bytes > 1024)
    }
    #expect(transport.count(of: "/me") == (bytes > 1024 ? 1 : 2))
  }

  @Test("Claims are one line of JSON as the provider wrote it")
  func line() throws {
    let claims = try UserClaims(json: Array("\n{ \"sub\":\n\t\"a\",\r\n\"n\": 12345678901234567890 }\n".utf8))
    #expect(claims.json == #"{ "sub":  "a",  "n": 12345678901234567890 }"#)
    #expect(throws: OIDCError.self) {
      try UserClaims(json: Array(#"{"sub":"\#(String(repeating: "x", count: 1 << 18))"}"#.utf8))
    }
  }

  @Test("Parameters of requests for tokens are in each, and replace those of the sign-in")
  func parameters() async throws {
    let variations = ProviderVariations(parameters: ["audience": "a", "prompt": "login"])
    var changed = variations
    changed.tokenParameters = ["audience": "b", "resource": "r"]
    let provider = IdentityProvider(
      id: "work", name: "Work", tokenEndpoint: url("https://login.example.com/token"), clientID: "app", scopes: [],
      type: .oauth2, allowsPasswordGrant: true, dpop: .off, variations: changed)
    let bench = Bench([.success(.tokens(1)), .success(.tokens(2))])
    _ = try await bench.client(provider).exchange(.refreshToken("x"))
    _ = try await bench.client(provider).signIn(with: Credentials(username: "u", password: "p"))
    #expect(bench.transport.forms[0]["audience"] == "b" && bench.transport.forms[0]["prompt"] == nil)
    #expect(bench.transport.forms[1]["audience"] == "b" && bench.transport.forms[1]["prompt"] == "login")
    #expect(bench.transport.forms[1]["resource"] == "r")
  }
}
