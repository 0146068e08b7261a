import ByteCoding
import Cryptography
import Transport

/// A DPoP proof (RFC 9449 section 4.2), valid unless a test changes it.
struct TokenProof: Sendable {
  let key: P256PrivateKey
  var algorithm = "ES256"
  var method = "POST"
  /// `nil` for a request that is not for a token of the gate.
  var nonce: String?
  var url: String
  /// The token that the request carries.
  var accessToken: String?
  var issuedAt = Timestamp.now().seconds

  init(key: P256PrivateKey, nonce: String? = nil, url: String) {
    (self.key, self.nonce, self.url) = (key, nonce, url)
  }

  var text: String {
    get throws {
      let point = key.publicKey.x963
      let (x, y) = (Base64URL.encode(point[1..<33]), Base64URL.encode(point[33...]))
      let header =
        #"{"typ":"dpop+jwt","alg":"\#(algorithm)","jwk":{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}}"#
      let id = Base64URL.encode(SecureRandom.bytes(16))
      var claims = #"{"jti":"\#(id)","htm":"\#(method)","htu":"\#(url)","iat":\#(issuedAt)"#
      if let nonce { claims += #","nonce":"\#(nonce)""# }
      if let accessToken { claims += #","ath":"\#(Base64URL.encode(SHA256.hash(Array(accessToken.utf8))))""# }
      let text = [header, claims + "}"].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
      return text + "." + Base64URL.encode(try key.es256Signature(for: Array(text.utf8)))
    }
  }
}

extension RunningGate {
  var tokenURL: String { "https://localhost:\(port)/attest/token" }
}

extension Visitor {
  /// Asks for a token.
  func token(_ credentials: HeaderFields, proof: String?, body: String = "audience=ledger") async throws -> Response {
    var fields = credentials.with("Content-Type", "application/x-www-form-urlencoded")
    if let proof { fields = fields.with("DPoP", proof) }
    for secret in [proof].compactMap(\.self) { remember(secret) }
    return try await send("POST", "/attest/token", fields, body: Array(body.utf8))
  }
}
