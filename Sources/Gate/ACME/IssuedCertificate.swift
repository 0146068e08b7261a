public import ByteCoding
public import Cryptography

/// A certificate with its chain and its key.
public struct IssuedCertificate: Sendable, Hashable {
  /// The server's certificate first, then its issuers.
  public let chain: [Certificate]
  /// PEM of `chain`.
  public let chainPEM: String
  /// PKCS #8 without encryption, PEM. A secret.
  public let keyPEM: String

  /// Why a text does not have a certificate with its key.
  public struct Malformed: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
  }

  /// Puts certificate and key together.
  ///
  /// - Throws: `Malformed` if the key is not that of the first certificate.
  public init(chainPEM: String, keyPEM: String) throws(Malformed) {
    do throws(CryptographyError) {
      chain = try Certificate.certificates(pem: chainPEM)
      let key = try ECPrivateKey(pkcs8PEM: keyPEM)
      guard chain.first?.subjectPublicKeyInfo == key.spki else {
        throw CryptographyError.malformedPrivateKey("it is not the key of the certificate")
      }
    } catch {
      throw Malformed(description: "\(error)")
    }
    (self.chainPEM, self.keyPEM) = (chainPEM, keyPEM)
  }

  /// Reads both from one file: the key, then the chain.
  public init(file: String) throws(Malformed) {
    guard let end = file.firstRange(of: "-----END PRIVATE KEY-----\n")?.upperBound else {
      throw Malformed(description: "no PEM block PRIVATE KEY")
    }
    try self.init(chainPEM: String(file[end...]), keyPEM: String(file[..<end]))
  }

  /// The key and the chain in one file, so that one step replaces both.
  public var file: String { keyPEM + chainPEM }

  /// The server's certificate. A chain is never empty.
  public var leaf: Certificate { chain[0] }
  public var notBefore: Timestamp { leaf.notBefore }
  public var notAfter: Timestamp { leaf.notAfter }

  /// The name of the certificate in requests for renewal information (RFC 9773 section 4.1); `nil` if the certificate
  /// does not name the key of its issuer.
  public var renewalID: String? {
    leaf.authorityKeyIdentifier.map { "\(Base64URL.encode($0)).\(Base64URL.encode(leaf.serialNumber))" }
  }

  /// The DNS names and the addresses of the certificate.
  private var identifiers: [Identifier] {
    leaf.dnsNames.map { Identifier($0) } + leaf.ipAddresses.compactMap { Identifier(address: $0) }
  }

  /// The DNS names in lower case, then the IP addresses.
  public var names: [String] { identifiers.map(\.value) }

  /// Whether clients accept the certificate for every one of `names`.
  public func covers(_ names: [String]) -> Bool {
    Set(names.map { Identifier($0) }).isSubset(of: identifiers)
  }
}

/// The certificate with which the listener answers a TLS-ALPN-01 challenge (RFC 8737 section 3, RFC 8738 section 6).
public enum ChallengeCertificate {
  /// The server name (SNI) with which a validator asks for the certificate of `name`.
  public static func serverName(for name: String) -> String { Identifier(name).validationServerName }

  /// Makes a self-signed certificate for `name`, a DNS name or an IP address.
  ///
  /// - Parameters:
  ///   - digest: The SHA-256 digest of the key authorization.
  ///   - now: It is valid for a week around this instant; validators do not look at the time.
  /// - Returns: The certificate and its key, PEM.
  public static func make(
    for name: String, digest: [UInt8], at now: Timestamp
  ) throws(CryptographyError) -> (certificatePEM: String, keyPEM: String) {
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("ACME challenge")), subjectPublicKeyInfo: key.spki,
      notBefore: now.advanced(by: .seconds(-3 * 86_400)), notAfter: now.advanced(by: .seconds(4 * 86_400)))
    template.extensions = [.subjectAlternativeNames([Identifier(name)]), .acmeIdentifier(digest)]
    return (try template.selfSigned(with: key).pem, try key.pkcs8PEM)
  }
}

extension CertificateExtension {
  /// The names of a certificate: DNS names as `dNSName`, addresses as `iPAddress` (RFC 5280 section 4.2.1.6).
  static func subjectAlternativeNames(_ identifiers: [Identifier]) -> CertificateExtension {
    .subjectAlternativeNames(
      dns: identifiers.filter { $0.address == nil }.map(\.value), addresses: identifiers.compactMap(\.address))
  }
}
