internal import ByteCoding

/// The validity period of a certificate.
struct Lifetime: Sendable {
  var start: Timestamp
  var end: Timestamp

  /// Creates a period that starts one day before `instant`, since clocks differ.
  init(from instant: Timestamp, days: Int64) {
    start = instant.advanced(by: .seconds(-86400))
    end = instant.advanced(by: .seconds(days * 86400))
  }
}

/// The templates for the certificates of a client authority.
extension CertificateTemplate {
  static func clientAuthority(
    _ subject: DistinguishedName, _ key: ECPrivateKey, _ lifetime: Lifetime
  ) -> CertificateTemplate {
    var template = CertificateTemplate(
      subject: subject, subjectPublicKeyInfo: key.spki, notBefore: lifetime.start, notAfter: lifetime.end)
    template.extensions = [
      .basicConstraints(isAuthority: true, pathLength: 0),
      .subjectKeyIdentifier(keyIdentifier(of: key.spki)),
      .keyUsage([.keyCertSign, .crlSign]),
    ]
    return template
  }

  static func client(
    _ subject: DistinguishedName, _ key: ECPrivateKey, under issuer: Certificate, _ lifetime: Lifetime
  ) -> CertificateTemplate {
    var template = CertificateTemplate(
      subject: subject, subjectPublicKeyInfo: key.spki, notBefore: lifetime.start, notAfter: lifetime.end)
    template.extensions = [
      .basicConstraints(isAuthority: false),
      .subjectKeyIdentifier(keyIdentifier(of: key.spki)),
      .keyUsage([.digitalSignature]),
      .extendedKeyUsage([.tlsClient]),
    ]
    // An authority made by openssl computes its key identifier differently, and a mismatch would make the issuer
    // unusable.
    if let identifier = issuer.subjectKeyIdentifier {
      template.extensions.append(.authorityKeyIdentifier(identifier))
    }
    return template
  }
}
