/// Why bytes are not the object that they should be, or why an operation could not be carried out.
public enum CryptographyError: Error, Sendable, Hashable {
  /// Not a point of P-256 in the one accepted encoding; the text says why.
  case malformedPublicKey(String)
  /// Not an unencrypted P-256 key in PKCS #8; the text says why, without quoting the key.
  case malformedPrivateKey(String)
  /// Not one whole X.509 certificate in DER; the text says why.
  case malformedCertificate(String)
  /// Not PEM (RFC 7468), or no block of the kind that was asked for.
  case malformedPEM(String)
  /// OpenSSL refused an operation on sound input: `reason` is what its error queue says.
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
