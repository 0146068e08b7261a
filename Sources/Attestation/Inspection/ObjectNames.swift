internal import ByteCoding
internal import Cryptography

/// The names of object identifiers that occur in what devices send.
enum ObjectNames {
  /// The arcs of an identifier, with its name if it is known.
  static func text(_ content: ArraySlice<UInt8>) -> String {
    // The content alone, as an element: the reader keeps its octets. Lengths up to 127 have one octet.
    guard content.count < 0x80 else { return ValueText.hex(content) }
    var reader = ASN1Reader([0x06, UInt8(content.count)] + content)
    guard let identifier = try? reader.objectIdentifier() else { return ValueText.hex(content) }
    let arcs = identifier.description
    guard let name = names[arcs] ?? extensions[arcs]?.name else { return arcs }
    return "\(arcs) (\(name))"
  }

  /// The short name in `text`, as names of certificates have it.
  static func short(_ text: String) -> String {
    let arcs = text.prefix { $0 != " " }
    return shortNames[String(arcs)] ?? String(arcs)
  }

  private static let shortNames = [
    "2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
    "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title",
  ]

  private static let names = [
    "2.5.4.3": "commonName", "2.5.4.4": "surname", "2.5.4.5": "serialNumber", "2.5.4.6": "countryName",
    "2.5.4.7": "localityName", "2.5.4.8": "stateOrProvinceName", "2.5.4.10": "organizationName",
    "2.5.4.11": "organizationalUnitName", "2.5.4.12": "title",
    "1.2.840.10045.2.1": "id-ecPublicKey", "1.2.840.10045.3.1.7": "P-256", "1.3.132.0.34": "P-384",
    "1.3.132.0.35": "P-521", "1.2.840.10045.4.3.2": "ecdsa-with-SHA256", "1.2.840.10045.4.3.3": "ecdsa-with-SHA384",
    "1.2.840.10045.4.3.4": "ecdsa-with-SHA512", "1.2.840.113549.1.1.1": "rsaEncryption",
    "1.2.840.113549.1.1.5": "sha1WithRSAEncryption", "1.2.840.113549.1.1.11": "sha256WithRSAEncryption",
    "1.2.840.113549.1.7.1": "data", "1.2.840.113549.1.7.2": "signedData",
    "1.2.840.113549.1.9.3": "contentType", "1.2.840.113549.1.9.4": "messageDigest",
    "1.2.840.113549.1.9.5": "signingTime", "1.2.840.113549.1.9.52": "cmsAlgorithmProtection",
    "2.16.840.1.101.3.4.2.1": "sha256", "2.16.840.1.101.3.4.2.2": "sha384",
    "1.2.840.113635.100.4.24": "App Attest, since January 2026",
    "1.3.6.1.5.5.7.1.1": "authorityInfoAccess", "1.3.6.1.5.5.7.48.1": "ocsp", "1.3.6.1.5.5.7.48.2": "caIssuers",
  ]

  /// An extension of a certificate.
  struct Extension: Sendable {
    let name: String
    let meaning: String?
    /// The content of its string; `nil` if only its bytes are known.
    let content: DERShape?

    fileprivate init(_ name: String, _ meaning: String? = nil, _ content: DERShape? = DERShape("content")) {
      (self.name, self.meaning, self.content) = (name, meaning, content)
    }
  }

  static let extensions: [String: Extension] = [
    "2.5.29.14": Extension("subjectKeyIdentifier", "a name of this certificate's key"),
    "2.5.29.15": Extension("keyUsage", "bits, highest first: 0 sign, 5 issue certificates, 6 issue revocation lists"),
    "2.5.29.17": Extension("subjectAltName", "the names of a server"),
    "2.5.29.19": Extension(
      "basicConstraints", "whether the subject is an authority",
      DERShape(
        "BasicConstraints", nil,
        .fields([
          DERShape("cA", "true for an authority; absent is false", tags: [0x01], isOptional: true),
          DERShape("pathLenConstraint", "how many authorities may be below", tags: [0x02], isOptional: true),
        ]))),
    "2.5.29.31": Extension("cRLDistributionPoints", "where revocation lists are"),
    "2.5.29.32": Extension("certificatePolicies", "the policies under which it was issued"),
    "2.5.29.35": Extension("authorityKeyIdentifier", "a name of the issuer's key"),
    "2.5.29.37": Extension("extKeyUsage", "what the key is for"),
    "1.2.840.113635.100.8.2": Extension(
      "App Attest nonce", "what the attestation is bound to",
      DERShape(
        "AppleAnonymousAttestation", nil,
        .fields([
          DERShape(
            "[1]", nil, tags: [0xA1],
            .fields([DERShape("nonce", "SHA-256 of authenticator data and client data hash", tags: [0x04])]))
        ]))),
    "1.2.840.113635.100.8.5": Extension("App Attest key", "properties of the key and its app"),
    "1.2.840.113635.100.8.6": Extension("App Attest device", "differs between iOS and macOS"),
    "1.2.840.113635.100.8.7": Extension("App Attest system", "the version of the system"),
    "1.2.840.113635.100.12.15": Extension("receipt signer", "the marker of Apple's signers of receipts"),
    "1.2.840.113635.100.6.2.3": Extension("Apple authority", "the marker of an Apple intermediate"),
    "1.3.6.1.4.1.11129.2.1.17": Extension(
      "Android key attestation", "what the device says about the key", .keyDescription),
    // CBOR in the string of the extension.
    "1.3.6.1.4.1.11129.2.1.30": Extension("Android provisioning", "the key was provisioned remotely (CBOR)", nil),
  ]
}
