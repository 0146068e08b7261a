import ByteCoding
import Cryptography
import Testing

@testable import GateService

@Suite("DPoP proofs")
struct DPoPProofTests {
  private static let now = Timestamp(seconds: 1_780_000_000)
  private static let nonce = String(repeating: "ab", count: 32)

  private static func verify(_ text: String, nonce: String = nonce, method: String = "POST") throws -> String {
    let uri = try #require(NormalizedURI(ProofMint.uri))
    return try DPoPProof(text).verify(method: method, uri: uri, nonce: nonce, at: now).thumbprint
  }

  private static func mint() throws -> ProofMint { try ProofMint(nonce: nonce, at: now) }

  /// A rule, and proofs that break it alone.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let rejection: DPoPRejection
    let alter: @Sendable (inout ProofMint) throws -> Void

    init(
      _ description: String, _ rejection: DPoPRejection, _ alter: @escaping @Sendable (inout ProofMint) throws -> Void
    ) {
      (testDescription, self.rejection, self.alter) = (description, rejection, alter)
    }
  }

  static let broken: [Case] = forms + headers + keys + claims + requests

  private static let forms: [Case] = [
    Case("two parts", .notAToken) { $0.alter = { String($0[..<($0.lastIndex(of: ".") ?? $0.endIndex)]) } },
    Case("four parts", .notAToken) { $0.alter = { $0 + ".AA" } },
    Case("a header with padding", .notAToken) { $0.alter = { $0.replacing(".", with: "=.", maxReplacements: 1) } },
    Case("a blank before", .notAToken) { $0.alter = { " " + $0 } },
    Case("an empty text", .notAToken) { $0.alter = { _ in "" } },
    Case("4,097 bytes", .tooLong(bytes: 4097)) {
      $0.alter = { $0 + String(repeating: "A", count: 4097 - $0.utf8.count) }
    },
    Case("no signature", .malformedSignature) {
      $0.alter = { String($0[...($0.lastIndex(of: ".") ?? $0.startIndex)]) }
    },
    Case("a signature of 65 bytes", .malformedSignature) { $0.alter = { $0 + "AA" } },
    Case("a header that is an array", .malformedHeader) {
      $0.alter = { Base64URL.encode(Array("[]".utf8)) + $0[($0.firstIndex(of: ".") ?? $0.startIndex)...] }
    },
    Case("a header with typ twice", .malformedHeader) { $0.header["typ"] = #""dpop+jwt","typ":"dpop+jwt""# },
    Case("claims with htm twice", .malformedClaims) { $0.claims["htm"] = #""POST","htm":"POST""# },
  ]

  private static let headers: [Case] = [
    Case("no typ", .unexpectedType) { $0.header["typ"] = nil },
    Case("typ JWT", .unexpectedType) { $0.header["typ"] = "\"JWT\"" },
    Case("no alg", .unexpectedAlgorithm) { $0.header["alg"] = nil },
    Case("alg none", .unexpectedAlgorithm) { $0.header["alg"] = "\"none\"" },
    Case("alg HS256", .unexpectedAlgorithm) { $0.header["alg"] = "\"HS256\"" },
    Case("alg ES384", .unexpectedAlgorithm) { $0.header["alg"] = "\"ES384\"" },
    Case("alg in lower case", .unexpectedAlgorithm) { $0.header["alg"] = "\"es256\"" },
    Case("crit", .unknownExtension) { $0.header["crit"] = "[\"x\"]" },
    Case("typ that is a number", .malformedHeader) { $0.header["typ"] = "1" },
  ]

  private static let keys: [Case] = [
    Case("no jwk", .malformedKey) { $0.header["jwk"] = nil },
    Case("jwk that is a text", .malformedHeader) { $0.header["jwk"] = "\"x\"" },
    Case("an RSA key", .malformedKey) { $0.header["jwk"] = #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"# },
    Case("P-384", .malformedKey) { mint in
      mint.header["jwk"] = mint.header["jwk"]?.replacing("P-256", with: "P-384")
    },
    Case("a private key", .privateKey) { mint in
      mint.header["jwk"] = ProofMint.jwk(mint.key.publicKey, #","d":"AAAA""#)
    },
    Case("a private part that is null", .privateKey) { mint in
      mint.header["jwk"] = ProofMint.jwk(mint.key.publicKey, #","d":null"#)
    },
    Case("a coordinate of 31 bytes", .malformedKey) { mint in
      mint.header["jwk"] =
        #"{"kty":"EC","crv":"P-256","x":"\#(Base64URL.encode([UInt8](repeating: 1, count: 31)))","y":"AAAA"}"#
    },
    Case("no point of the curve", .malformedKey) { mint in
      let text = Base64URL.encode([UInt8](repeating: 1, count: 32))
      mint.header["jwk"] = #"{"kty":"EC","crv":"P-256","x":"\#(text)","y":"\#(text)"}"#
    },
    Case("another key's signature", .invalidSignature) { $0.signer = try P256PrivateKey() },
    Case("another key's jwk", .invalidSignature) {
      $0.header["jwk"] = ProofMint.jwk(try P256PrivateKey().publicKey)
    },
    Case("a signature of zeros", .invalidSignature) {
      $0.alter = {
        $0[...($0.lastIndex(of: ".") ?? $0.startIndex)] + Base64URL.encode([UInt8](repeating: 0, count: 64))
      }
    },
  ]

  private static let claims: [Case] =
    ["jti", "htm", "htu", "iat", "nonce"].flatMap { name in
      [
        Case("no \(name)", .missingClaim(name)) { $0.claims[name] = nil },
        Case("\(name) is null", .missingClaim(name)) { $0.claims[name] = "null" },
        Case("\(name) of another type", .malformedClaims) { $0.claims[name] = "[]" },
      ]
    } + [
      Case("an empty jti", .missingClaim("jti")) { $0.claims["jti"] = "\"\"" },
      Case("iat as a text", .malformedClaims) { $0.claims["iat"] = "\"1780000000\"" },
    ]

  private static let requests: [Case] = [
    Case("htm GET", .methodMismatch) { $0.claims["htm"] = "\"GET\"" },
    Case("htm in lower case", .methodMismatch) { $0.claims["htm"] = "\"post\"" },
    Case("another host", .uriMismatch) { $0.claims["htu"] = "\"https://other.example:6200/attest/token\"" },
    Case("another port", .uriMismatch) { $0.claims["htu"] = "\"https://gate.example/attest/token\"" },
    Case("another path", .uriMismatch) { $0.claims["htu"] = "\"https://gate.example:6200/attest/verify\"" },
    Case("a path in capitals", .uriMismatch) { $0.claims["htu"] = "\"https://gate.example:6200/attest/Token\"" },
    Case("a path with a slash after it", .uriMismatch) {
      $0.claims["htu"] = "\"https://gate.example:6200/attest/token/\""
    },
    Case("http", .uriMismatch) { $0.claims["htu"] = "\"http://gate.example:6200/attest/token\"" },
    Case("a user", .uriMismatch) { $0.claims["htu"] = "\"https://gate.example:6200@evil.example/attest/token\"" },
    Case("no URI", .uriMismatch) { $0.claims["htu"] = "\"\"" },
    Case("another nonce", .nonceMismatch) { $0.claims["nonce"] = "\"\(String(repeating: "ac", count: 32))\"" },
    Case("the nonce in capitals", .nonceMismatch) { $0.claims["nonce"] = "\"\(nonce.uppercased())\"" },
    Case("301 seconds old", .notFresh(seconds: 301)) { $0.claims["iat"] = "\(now.seconds - 301)" },
    Case("301 seconds ahead", .notFresh(seconds: -301)) { $0.claims["iat"] = "\(now.seconds + 301)" },
    Case("of the far future", .notFresh(seconds: -1_000_000_000_000_000)) { $0.claims["iat"] = "1e300" },
  ]

  @Test("A proof that breaks one rule is refused by this rule", arguments: broken)
  func refused(_ broken: Case) throws {
    var mint = try Self.mint()
    try broken.alter(&mint)
    let text = try mint.text
    #expect(throws: broken.rejection) { try Self.verify(text) }
  }

  static let sound: [(String, @Sendable (inout ProofMint) -> Void)] = [
    ("unchanged", { _ in }),
    ("300 seconds old", { $0.claims["iat"] = "\(now.seconds - 300)" }),
    ("300 seconds ahead", { $0.claims["iat"] = "\(now.seconds + 300)" }),
    ("with a fraction of a second", { $0.claims["iat"] = "\(now.seconds).5" }),
    ("a URI with query and fragment", { $0.claims["htu"] = "\"\(ProofMint.uri)?a=b#c\"" }),
    ("a URI in another form", { $0.claims["htu"] = "\"HTTPS://Gate.EXAMPLE:6200/x/../%61ttest/./token\"" }),
    (
      "further members",
      {
        $0.claims["ath"] = "\"x\""; $0.header["kid"] = "\"x\""
      }
    ),
    (
      "further members of the key",
      { $0.header["jwk"] = ProofMint.jwk($0.key.publicKey, #","kid":"x","use":"sig","alg":"ES256""#) }
    ),
  ]

  @Test("A proof that keeps the rules is accepted, and gives the thumbprint of its key", arguments: sound.indices)
  func accepted(_ index: Int) throws {
    var mint = try Self.mint()
    Self.sound[index].1(&mint)
    let thumbprint = try Self.verify(mint.text)
    // RFC 7638 section 3.2, by hand.
    let point = mint.key.publicKey.x963
    let (x, y) = (Base64URL.encode(point[1..<33]), Base64URL.encode(point[33...]))
    #expect(
      thumbprint == Base64URL.encode(SHA256.hash(Array(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#.utf8))))
  }

  @Test("The proof of RFC 9449 section 4.2 is parsed, and refused for its missing nonce alone")
  func example() {
    let proof =
      "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoR"
      + "jQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqd"
      + "GkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNT"
      + "YyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
    #expect(throws: DPoPRejection.missingClaim("nonce")) { try DPoPProof(proof) }
  }

  @Test("A proof with one changed bit anywhere is refused")
  func flipped() throws {
    let text = Array(try Self.mint().text.utf8)
    for index in text.indices {
      var changed = text
      changed[index] ^= 1
      let proof = String(decoding: changed, as: UTF8.self)
      #expect(throws: DPoPRejection.self, "byte \(index)") { try Self.verify(proof) }
    }
  }
}

@Suite("URIs of proofs")
struct NormalizedURITests {
  @Test(
    "Two texts for one resource are equal",
    arguments: [
      ("https://a.example/x", "HTTPS://A.Example:443/x"), ("https://a.example", "https://a.example:/"),
      ("https://a.example/%7ex/%2f", "https://a.example/~x/%2F"), ("https://a.example/a/../b", "https://a.example/b"),
      ("https://a.example/a/..", "https://a.example/"), ("https://a.example/../../b", "https://a.example/b"),
      ("https://[2001:DB8::1]:8443/x?q", "https://[2001:db8::1]:8443/x#f"),
    ])
  func equal(_ first: String, _ second: String) throws {
    #expect(try #require(NormalizedURI(first)) == #require(NormalizedURI(second)))
  }

  @Test(
    "Texts for other resources differ",
    arguments: [
      ("https://a.example/x", "https://a.example/x/"), ("https://a.example/x", "https://a.example:6200/x"),
      ("https://a.example/x", "https://b.example/x"), ("https://a.example/a%2Fb", "https://a.example/a/b"),
      ("https://a.example//x", "https://a.example/x"),
    ])
  func different(_ first: String, _ second: String) throws {
    #expect(try #require(NormalizedURI(first)) != #require(NormalizedURI(second)))
  }

  @Test(
    "What is no https URI of a host is refused",
    arguments: [
      "", "https://", "https:///x", "http://a.example/", "a.example/x", "https://u@a.example/", "https://a.example:0/",
      "https://a.example:65536/", "https://a.example:+1/", "https://a.example/%", "https://a.example/%g0",
      "https://a example/", "https://ä.example/", "https://[::1/", "https://[]/", "https://[::1]x/",
    ])
  func refused(_ text: String) { #expect(NormalizedURI(text) == nil) }

  @Test("A text of 2,048 bytes is read, and a longer one is refused")
  func bounded() {
    let start = "https://a.example/"
    let longest = start + String(repeating: "x", count: NormalizedURI.longest - start.utf8.count)
    #expect(NormalizedURI(longest) != nil)
    #expect(NormalizedURI(longest + "x") == nil)
  }

  @Test("A Host field and a path are the same resource as their URI")
  func host() throws {
    #expect(NormalizedURI(hostField: "Gate.example:6200", path: "/x") == NormalizedURI("https://gate.example:6200/x"))
    #expect(NormalizedURI(hostField: "gate.example", path: "/x") == NormalizedURI("https://gate.example:443/x"))
    for field in ["", "a b", "a@b", "a/b", "a:b"] { #expect(NormalizedURI(hostField: field, path: "/x") == nil) }
  }
}
