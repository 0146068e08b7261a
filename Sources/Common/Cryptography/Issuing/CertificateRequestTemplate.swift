/// The content of a request for a certificate (PKCS #10, RFC 2986). Signing it makes the request.
public struct CertificateRequestTemplate: Sendable, Hashable {
  /// The name of the certificate's future owner. May be empty: authorities take the names from the extension.
  public var subject: DistinguishedName
  /// The requested extensions, such as the names of a server (RFC 2985 section 5.4.2).
  public var extensions: [CertificateExtension]

  /// Creates a request.
  public init(subject: DistinguishedName = DistinguishedName(), extensions: [CertificateExtension]) {
    self.subject = subject
    self.extensions = extensions
  }

  /// Returns the request in DER, signed with the key for which the certificate is requested.
  public func signed(with key: ECPrivateKey) throws(CryptographyError) -> [UInt8] {
    let digest = key.curve.digest
    let requested = DER.sequence(
      DER.objectIdentifier(.extensionRequest), DER.set(of: [DER.sequence(of: extensions.map(\.encoded))]))
    // The attributes are an implicitly tagged SET.
    let information = DER.sequence(DER.integer(0), subject.encoded, key.spki, DER.context(0, requested))
    let signature = try key.signature(for: information, digest: digest)
    return DER.sequence(information, digest.signatureAlgorithm, DER.bitString(signature))
  }
}
