internal import AndroidKeyAttestation
internal import AppAttest

// Certificates (RFC 5280 section 4.1).
extension DERShape {
  static let identifier = DERShape("identifier", nil, tags: [0x06])

  /// The identifier of an algorithm, and its parameters.
  private static func algorithm(_ name: String, _ meaning: String? = nil) -> DERShape {
    DERShape(name, meaning, .identified)
  }

  /// A set of a name, nearly always with one attribute.
  static let relativeName = DERShape("relativeName", nil, .each(DERShape("attribute", nil, .identified)))

  /// An ECDSA signature (RFC 3279 section 2.2.3).
  static let signature = DERShape(
    "ECDSA-Sig-Value", nil,
    .fields([DERShape("r", "half of the signature"), DERShape("s", "the other half; -s would be valid, too")]))

  private static let validity = DERShape(
    "validity", "when a verifier may accept it", .fields([DERShape("notBefore"), DERShape("notAfter")]))

  private static let publicKeyInfo = DERShape(
    "subjectPublicKeyInfo", "the key that is certified",
    .fields([
      algorithm("algorithm"), DERShape("subjectPublicKey", "after a byte 0: 4, x and y for a key on a curve"),
    ]))

  static let certificate = DERShape(
    "Certificate", nil, tags: [0x30],
    .fields([
      DERShape(
        "tbsCertificate", "what the issuer has signed",
        .fields([
          DERShape(
            "version", "absent is 1", tags: [0xA0], isOptional: true,
            .fields([DERShape("number", nil, .words([0: "version 1", 1: "version 2", 2: "version 3"]))])),
          DERShape("serialNumber", "the issuer's number, in hex as in status lists", tags: [0x02], .hexNumber),
          algorithm("signature", "the algorithm of the issuer's signature"),
          DERShape("issuer", "the subject of the certificate above", .name),
          validity,
          DERShape("subject", "who has the key", .name),
          publicKeyInfo,
          DERShape(
            "extensions", nil, tags: [0xA3], isOptional: true,
            .fields([DERShape("list", nil, .each(DERShape("extension", nil, .certificateExtension)))])),
        ])),
      algorithm("signatureAlgorithm", "the same as inside"),
      DERShape("signatureValue", "the issuer's signature of tbsCertificate", tags: [0x03], .any),
    ]))
}

// Receipts: signed data (RFC 5652 section 5) around a set of numbered fields.
extension DERShape {
  static let receipt = DERShape(
    "ContentInfo", "signed data (RFC 5652)", tags: [0x30],
    .fields([
      DERShape("contentType", nil, tags: [0x06]),
      DERShape("content", nil, tags: [0xA0], .fields([signedData])),
    ]))

  private static let signedData = DERShape(
    "SignedData", nil,
    .fields([
      DERShape("version", nil, tags: [0x02]),
      DERShape("digestAlgorithms", nil, tags: [0x31], .each(algorithm("digestAlgorithm"))),
      DERShape(
        "encapContentInfo", "what is signed",
        .fields([
          DERShape("eContentType", nil, tags: [0x06]),
          DERShape(
            "eContent", nil, tags: [0xA0],
            .fields([DERShape("payload", "the fields of the receipt", tags: [0x04, 0x24], .receiptFields)])),
        ])),
      DERShape("certificates", "of the signer and those above", tags: [0xA0], isOptional: true, .each(certificate)),
      DERShape("crls", "revocation lists, which no receipt has", tags: [0xA1], isOptional: true),
      DERShape("signerInfos", nil, tags: [0x31], .each(signerInfo)),
    ]))

  private static let signerInfo = DERShape(
    "SignerInfo", nil,
    .fields([
      DERShape("version", nil, tags: [0x02]),
      DERShape(
        "sid", "the certificate of the signer", tags: [0x30],
        .fields([DERShape("issuer", nil, .name), DERShape("serialNumber")])),
      algorithm("digestAlgorithm"),
      DERShape(
        "signedAttrs", "signed instead of the content, whose digest they have", tags: [0xA0], isOptional: true,
        .each(DERShape("attribute", nil, .identified))),
      algorithm("signatureAlgorithm"),
      DERShape("signature", "the signer's signature", tags: [0x04], .string(signature)),
      DERShape("unsignedAttrs", nil, tags: [0xA1], isOptional: true),
    ]))

  static let segment = DERShape("segment", nil, tags: [0x04])
  static let receiptFields = DERShape("fields", nil, tags: [0x31], .each(DERShape("field", nil, .receiptField)))
}

extension ReceiptField {
  var content: DERShape.Content {
    switch self {
    case .attestedKey: .string(.certificate)
    case .clientDataHash: .any
    case .appID, .token, .type, .environment, .creationTime, .riskMetric, .renewableFrom, .expirationTime: .text
    }
  }

  var meaning: String {
    switch self {
    case .appID: "the app, TEAMID.bundle.identifier"
    case .attestedKey: "the leaf certificate of the attestation"
    case .clientDataHash: "the client data hash of the attestation; useless in a receipt of type RECEIPT"
    case .token: "a token of Apple's server"
    case .type: "ATTEST comes with an attestation, RECEIPT from Apple's server"
    case .environment: "sandbox or production"
    case .creationTime: "when Apple made the receipt"
    case .riskMetric: "about how many keys the device has attested in the last days"
    case .renewableFrom: "from when Apple exchanges it for a newer one; no start of validity"
    case .expirationTime: "from when it is not valid"
    }
  }
}

// The attestation extension of Android.
extension DERShape {
  private static let levels = DERShape.Content.words(
    Dictionary(uniqueKeysWithValues: KeyDescription.SecurityLevel.allCases.map { ($0.rawValue, $0.name) }))

  static let keyDescription = DERShape(
    "KeyDescription", nil,
    .fields([
      DERShape("attestationVersion", "the version of this structure"),
      DERShape("attestationSecurityLevel", "where the attestation was made", levels),
      DERShape("keyMintVersion", "the version of Keymaster or KeyMint"),
      DERShape("keyMintSecurityLevel", "where the key lives", levels),
      DERShape("attestationChallenge", "what the app gave: the bytes of the gate's nonce"),
      DERShape("uniqueId", "an identifier of the device for system apps; empty for others"),
      DERShape("softwareEnforced", "what Android says: a changed system can say anything", .authorizations),
      DERShape("hardwareEnforced", "what the secure hardware says", .authorizations),
    ]))

  /// The element in the explicit tag of an authorization.
  static func authorization(_ tag: AuthorizationTag?) -> DERShape {
    switch tag {
    case .rootOfTrust: DERShape("RootOfTrust", nil, .fields(rootOfTrust))
    case .attestationApplicationId: DERShape("AttestationApplicationId", nil, .string(applicationID))
    case .idBrand, .idDevice, .idProduct, .idManufacturer, .idModel: DERShape("value", nil, .text)
    default: DERShape("value")
    }
  }

  private static let rootOfTrust = [
    DERShape("verifiedBootKey", "SHA-256 of the key that signed the system; zeros if nothing was verified"),
    DERShape("deviceLocked", "whether the boot loader is locked, so that only a signed system starts"),
    DERShape(
      "verifiedBootState", "whether the system is the one that its maker signed",
      .words(
        Dictionary(uniqueKeysWithValues: RootOfTrust.VerifiedBootState.allCases.map { ($0.rawValue, $0.name) }))),
    DERShape("verifiedBootHash", "the digest of all that was verified"),
  ]

  private static let applicationID = DERShape(
    "AttestationApplicationId", "the app that asked, as Android reports it",
    .fields([
      DERShape(
        "packageInfos", nil,
        .each(
          DERShape(
            "package", nil,
            .fields([DERShape("packageName", "the app", .text), DERShape("version", "its version code")])))),
      DERShape("signatureDigests", "SHA-256 of the certificates that signed the app", .each(DERShape("digest"))),
    ]))
}
