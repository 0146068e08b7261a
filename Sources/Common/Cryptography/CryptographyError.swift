/// Why bytes are not the object that they should be, or why an operation could not be carried out.
public enum CryptographyError: Error, Sendable, Hashable {
  /// The bytes are not a point of P-256 in the one accepted encoding; the text is the reason.
  case malformedPublicKey(String)
  /// The bytes are not an unencrypted P-256 key in PKCS #8; the text is the reason and does not quote the key.
  case malformedPrivateKey(String)
  /// The bytes are not exactly one X.509 certificate in DER; the text is the reason.
  case malformedCertificate(String)
  /// The text is not PEM (RFC 7468), or has no block of the requested kind.
  case malformedPEM(String)
  /// OpenSSL failed on valid input; `reason` is from its error queue.
  case operationFailed(String, reason: String)
}

extension CryptographyError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformedPublicKey(let reason): "malformed public key: \(reason)"
    case .malformedPrivateKey(let reason): "malformed private key: \(reason)"
    case .malformedCertificate(let reason): "malformed certificate: \(reason)"
    case .malformedPEM(let reason): "malformed PEM: \(reason)"
    case .operationFailed(let operation, let reason): "\(operation) failed: \(reason)"
    }
  }
}
