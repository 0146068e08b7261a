public import Cryptography

/// The proof that a client holds an attested key, once per connection: a signature over a nonce of the gate.
///
/// An Android key has no counter, so the nonce alone makes a proof unique. It must be spent durably before the answer.
public enum AndroidKeyProof {
  /// The size of a nonce in bytes.
  public static let nonceSize = 32
  /// Begins every message, so that a signature for something else is never a proof. It ends with a zero byte.
  public static let domain = Array("sallyport android key v1\0".utf8)

  /// The message that the client signs with ECDSA and SHA-256: the domain, the nonce and the key's name.
  public static func message(nonce: [UInt8], publicKey: P256PublicKey) -> [UInt8] {
    domain + nonce + SHA256.hash(publicKey.x963)
  }

  /// Verifies that `signature`, in DER, is one over `nonce` by `publicKey`.
  public static func verify(
    _ signature: [UInt8], nonce: [UInt8], by publicKey: P256PublicKey
  ) throws(AndroidKeyProofRejection) {
    guard nonce.count == nonceSize else { throw .nonceSize(nonce.count) }
    guard publicKey.isValidSignature(signature, for: message(nonce: nonce, publicKey: publicKey)) else {
      throw .invalidSignature
    }
  }
}

/// Why a proof is not accepted.
public enum AndroidKeyProofRejection: Error, Sendable, Hashable {
  /// The nonce does not have 32 bytes.
  case nonceSize(Int)
  /// Not a signature in DER by this key, or not one of this nonce.
  case invalidSignature
}

extension AndroidKeyProofRejection: CustomStringConvertible {
  public var description: String {
    switch self {
    case .nonceSize(let size): "the nonce has \(size) bytes, not \(AndroidKeyProof.nonceSize)"
    case .invalidSignature: "the signature is not the key's, or not one of this nonce"
    }
  }
}
