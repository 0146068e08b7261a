public import Cryptography

/// A certificate together with its private key.
public struct SigningIdentity: Sendable {
  /// The certificate of the key.
  public let certificate: Certificate
  /// The private key.
  public let key: ECPrivateKey

  /// Creates an identity. It does not check that certificate and key belong together.
  public init(certificate: Certificate, key: ECPrivateKey) {
    self.certificate = certificate
    self.key = key
  }

  /// A self-signed identity with a new key.
  static func root(_ template: (ECPrivateKey) -> CertificateTemplate) throws(CryptographyError) -> SigningIdentity {
    let key = try ECPrivateKey(.p384)
    return SigningIdentity(certificate: try template(key).selfSigned(with: key), key: key)
  }

  /// An identity with a new key that this one issues.
  func issue(
    _ curve: ECPrivateKey.Curve, _ template: (ECPrivateKey) -> CertificateTemplate
  ) throws(CryptographyError) -> SigningIdentity {
    let key = try ECPrivateKey(curve)
    return SigningIdentity(certificate: try template(key).signed(by: certificate, key: self.key), key: key)
  }

  /// The name of the key in key identifier extensions.
  var keyIdentifier: [UInt8] { CertificateTemplate.keyIdentifier(of: key.spki) }
}
