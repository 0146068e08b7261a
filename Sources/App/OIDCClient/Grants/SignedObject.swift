internal import ByteCoding
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// Makes compact signed tokens (RFC 7515, section 7.1): client assertions and DPoP proofs.
enum SignedObject {
  /// A private key of the client.
  enum Key {
    case p256(P256.Signing.PrivateKey)
    case rsa(_RSA.Signing.PrivateKey)
    /// The same with the padding PSS (RFC 7518, section 3.5).
    case rsaPSS(_RSA.Signing.PrivateKey)

    /// Reads a key in PEM: PKCS #8, or the older form of its kind.
    ///
    /// - Parameter algorithm: The algorithm to sign with; `nil` for the usual one of the key.
    /// - Throws: `.clientKey`.
    init(pem: String, algorithm: SignatureAlgorithm? = nil) throws(OIDCError) {
      if let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) {
        self = .p256(key)
      } else if let key = try? _RSA.Signing.PrivateKey(pemRepresentation: pem) {
        self = algorithm == .ps256 ? .rsaPSS(key) : .rsa(key)
      } else {
        throw .clientKey("it is neither a P-256 key nor an RSA key of at least 2,048 bits, as PEM")
      }
      if let algorithm, algorithm != self.algorithm { throw .clientKey("it is not one for \(algorithm.rawValue)") }
    }

    var algorithm: SignatureAlgorithm {
      switch self {
      case .p256: .es256
      case .rsa: .rs256
      case .rsaPSS: .ps256
      }
    }

    func signature(for message: [UInt8]) throws(OIDCError) -> Data {
      do {
        switch self {
        case .p256(let key): return try key.signature(for: message).rawRepresentation
        case .rsa(let key):
          return try key.signature(for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation
        // The salt is as long as the hash.
        case .rsaPSS(let key):
          return try key.signature(for: SHA256.hash(data: message), padding: .PSS).rawRepresentation
        }
      } catch {
        throw .clientKey("\(error)")
      }
    }
  }

  /// Signs `payload` under `header`, which gets `alg` in addition.
  static func token(header: some Encodable, payload: some Encodable, key: Key) throws(OIDCError) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let text: String
    do {
      text = try [Array(encoder.encode(header)), Array(encoder.encode(payload))].map { Base64URL.encode($0) }
        .joined(separator: ".")
    } catch {
      throw .clientKey("\(error)")
    }
    return text + "." + Base64URL.encode(Array(try key.signature(for: Array(text.utf8))))
  }
}
