import AttestGate
import ByteCoding
import Cryptography
import Foundation
import GateFixtures
import Transport

/// Makes DPoP proofs whose members a test can alter. The values of the members are JSON.
struct ProofMint: Sendable {
  let key: P256PrivateKey
  var header: [String: String]
  var claims: [String: String]
  /// The key that signs, if it is not the one in the header.
  var signer: P256PrivateKey?
  /// Changes the proof after it was signed.
  var alter: @Sendable (String) -> String = { $0 }

  static let uri = "https://gate.example:6200/attest/token"

  init(key: P256PrivateKey? = nil, nonce: String, at now: Timestamp) throws {
    self.key = try key ?? P256PrivateKey()
    header = ["typ": "\"dpop+jwt\"", "alg": "\"ES256\"", "jwk": Self.jwk(self.key.publicKey)]
    claims = [
      "jti": "\"a\"", "htm": "\"POST\"", "htu": "\"\(Self.uri)\"", "iat": "\(now.seconds)", "nonce": "\"\(nonce)\"",
    ]
  }

  /// The public key as a JWK, with further members.
  static func jwk(_ key: P256PublicKey, _ further: String = "") -> String {
    let jwk = JSONWebKey(key)
    return #"{"kty":"EC","crv":"P-256","x":"\#(jwk.x)","y":"\#(jwk.y)"\#(further)}"#
  }

  private static func object(_ members: [String: String]) -> String {
    "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
  }

  var text: String {
    get throws {
      let signed = [header, claims].map { Base64URL.encode(Array(Self.object($0).utf8)) }.joined(separator: ".")
      return alter(signed + "." + Base64URL.encode(try (signer ?? key).es256Signature(for: Array(signed.utf8))))
    }
  }
}

extension Request {
  /// Returns a token request.
  static func token(
    _ headers: [(String, String)], proof: String?, body: String = "audience=https%3A%2F%2Fapi.example"
  ) -> Request {
    let type = [("Content-Type", "application/x-www-form-urlencoded")]
    return .plain("POST", "/attest/token", type + headers + (proof.map { [("DPoP", $0)] } ?? []), body: body)
  }
}
