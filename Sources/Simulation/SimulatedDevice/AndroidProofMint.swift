internal import AndroidKeyAttestation
public import Cryptography

/// Makes the proofs with which an app on Android opens connections.
public enum AndroidProofMint {
  /// The signature of `key` over `nonce`: ECDSA with SHA-256, in DER, as Android's `SHA256withECDSA` makes it.
  public static func proof(by key: P256PrivateKey, nonce: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: AndroidKeyProof.message(nonce: nonce, publicKey: key.publicKey))
  }
}
