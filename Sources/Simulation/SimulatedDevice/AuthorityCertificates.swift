internal import ByteCoding
internal import Cryptography

/// From when to when a certificate of the authority is good.
struct Validity: Sendable {
  let notBefore: Timestamp
  let notAfter: Timestamp

  init(from instant: Timestamp, years: Int64) {
    notBefore = instant.advanced(by: .seconds(-86400))
    notAfter = instant.advanced(by: .seconds(years * 365 * 86400))
  }
}

/// The contents of a test authority's certificates.
extension CertificateTemplate {
  private init(_ commonName: String, _ key: ECPrivateKey, _ validity: Validity) {
    self.init(
      subject: DistinguishedName(.commonName(commonName), .organization(TestAuthority.organization)),
      subjectPublicKeyInfo: key.spki, notBefore: validity.notBefore, notAfter: validity.notAfter)
  }

  static func root(_ commonName: String, _ key: ECPrivateKey, _ validity: Validity) -> CertificateTemplate {
    var template = CertificateTemplate(commonName, key, validity)
    template.extensions = [
      .basicConstraints(isAuthority: true),
      .subjectKeyIdentifier(keyIdentifier(of: key.spki)),
      .keyUsage([.keyCertSign, .crlSign]),
    ]
    return template
  }

  static func intermediate(
    _ commonName: String, _ key: ECPrivateKey, under issuer: SigningIdentity, _ validity: Validity,
    marker: ObjectIdentifier? = nil
  ) -> CertificateTemplate {
    var template = CertificateTemplate(commonName, key, validity)
    template.extensions = [
      .basicConstraints(isAuthority: true, pathLength: 0),
      .authorityKeyIdentifier(issuer.keyIdentifier),
      .subjectKeyIdentifier(keyIdentifier(of: key.spki)),
      .keyUsage([.keyCertSign, .crlSign]),
    ]
    if let marker { template.extensions.append(CertificateExtension(marker, value: DER.null)) }
    return template
  }

  static func receiptSigner(
    _ key: ECPrivateKey, under issuer: SigningIdentity, _ validity: Validity
  ) -> CertificateTemplate {
    var template = endEntity("Simulated Receipt Signing", key, under: issuer, validity)
    template.extensions.append(CertificateExtension(.receiptMarker, value: DER.null))
    return template
  }

  static func tlsServer(
    _ names: ServerNames, _ key: ECPrivateKey, under issuer: SigningIdentity, _ validity: Validity
  ) -> CertificateTemplate {
    let names = names.adding(to: .loopback)
    var template = endEntity("localhost", key, under: issuer, validity)
    template.extensions += [
      .extendedKeyUsage([.tlsServer]), .subjectAlternativeNames(dns: names.hosts, addresses: names.addresses),
    ]
    return template
  }

  static func tlsClient(
    _ commonName: String, _ key: ECPrivateKey, under issuer: SigningIdentity, _ validity: Validity
  ) -> CertificateTemplate {
    var template = endEntity(commonName, key, under: issuer, validity)
    template.extensions.append(.extendedKeyUsage([.tlsClient]))
    return template
  }

  private static func endEntity(
    _ commonName: String, _ key: ECPrivateKey, under issuer: SigningIdentity, _ validity: Validity
  ) -> CertificateTemplate {
    var template = CertificateTemplate(commonName, key, validity)
    template.extensions = [
      .basicConstraints(isAuthority: false),
      .authorityKeyIdentifier(issuer.keyIdentifier),
      .subjectKeyIdentifier(keyIdentifier(of: key.spki)),
      .keyUsage([.digitalSignature]),
    ]
    return template
  }
}
