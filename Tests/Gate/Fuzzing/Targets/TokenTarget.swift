import AttestGate
import ByteCoding
import Cryptography

@testable import GateService

extension FuzzTarget {
  /// The first byte selects the parser.
  static let token = FuzzTarget(
    name: "token", longest: 2048,
    words: [
      "eyJ", ".", "dpop+jwt", "ES256", "\"jwk\":", "https://", "[::1]", "%2F", "%7e", "/../", "audience=", "&", "+",
    ],
    seeds: { try TokenInvariants.seeds() }, accepts: TokenInvariants.check)
}

/// The parts of a token request: the DPoP proof, the URI in it, and the form.
enum TokenInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let selector = input.first else { return false }
    switch selector % 3 {
    case 0: return try checkProof(Array(input.dropFirst()))
    case 1: return try checkURI(String(decoding: input.dropFirst(), as: UTF8.self))
    default: return try checkForm(Array(input.dropFirst()))
    }
  }

  private static func checkProof(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let text = String(decoding: input, as: UTF8.self)
    guard let proof = try? DPoPProof(text) else { return false }
    try require(text.utf8.count <= DPoPProof.longest, "a proof is bounded")
    try require(text.utf8.allSatisfy { $0 < 0x80 }, "a proof is ASCII")
    guard let uri, (try? proof.verify(method: "POST", uri: uri, nonce: nonce, at: now)) != nil else { return true }
    // ECDSA signatures are malleable, so only the signed part identifies a proof.
    let signed = text.prefix(upTo: text.lastIndex(of: ".") ?? text.startIndex)
    try require(signedTexts.contains(String(signed)), "only what a key has signed verifies", text)
    for (method, other) in [("GET", nonce), ("POST", nonce + "0")] {
      let isValid = (try? proof.verify(method: method, uri: uri, nonce: other, at: now)) != nil
      try require(!isValid, "a proof is for one method and one nonce")
    }
    return true
  }

  private static func checkURI(_ text: String) throws(InvariantViolation) -> Bool {
    guard let uri = NormalizedURI(text) else { return false }
    let written = "https://\(uri.host):\(uri.port)\(uri.path)"
    // A text without a port can be a few bytes too long with one.
    try require(
      written.utf8.count > NormalizedURI.longest || NormalizedURI(written) == uri,
      "the normal form is its own normal form", written)
    try require(uri.path.hasPrefix("/") && !uri.path.split(separator: "/").contains(".."), "no dot segments", uri.path)
    try require(!uri.host.contains { $0.isUppercase || "/@?#".contains($0) }, "a host is only a host", uri.host)
    try require(
      NormalizedURI(hostField: "\(uri.host):\(uri.port)", path: uri.path) == uri, "host and path give the same URI")
    return true
  }

  private static func checkForm(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let request = try? TokenRequest(form: input) else { return false }
    let (name, value) =
      switch request.purpose {
      case .token(let audience): ("audience", audience)
      case .attestation(let clientID): ("client_id", clientID)
      }
    let escaped = value.utf8.map { "%" + Hex.encode([$0]) }.joined()
    let again = try? TokenRequest(form: Array("\(name)=\(escaped)".utf8))
    try require(
      escaped.utf8.count > TokenRequest.longest - 10 || again == request, "a written value is read unchanged", escaped
    )
    return true
  }

  private static let now = Fixtures.instant
  private static let nonce = String(repeating: "0f", count: 32)
  private static let uriText = "https://gate.example:6200/attest/token"
  private static let uri = NormalizedURI(uriText)

  /// Everything that the key has signed.
  private static let signedTexts = Set(
    ((try? proofs()) ?? []).map { String($0.prefix(upTo: $0.lastIndex(of: ".") ?? $0.startIndex)) })

  private static func proofs() throws -> [String] {
    let key = Fixtures.shared.key
    let jwk = JSONWebKey(key.publicKey)
    let header =
      #"{"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"\#(jwk.x)","y":"\#(jwk.y)"}}"#
    return try [now.seconds, now.seconds - 1000].map { issuedAt in
      let claims = #"{"jti":"a","htm":"POST","htu":"\#(uriText)","iat":\#(issuedAt),"nonce":"\#(nonce)"}"#
      let text = [header, claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
      return text + "." + Base64URL.encode(try key.es256Signature(for: Array(text.utf8)))
    }
  }

  static func seeds() throws -> [[UInt8]] {
    let uris = [uriText, "HTTPS://A.example/%7e/../x?q#f", "https://[::1]:443", "https://u@a/"]
    let forms = ["audience=https%3A%2F%2Fa.example", "audience=a+b&scope=", "audience=a&audience=b", "audience=%"]
    return try proofs().map { [0] + $0.utf8 } + uris.map { [1] + $0.utf8 } + forms.map { [2] + $0.utf8 }
  }
}
