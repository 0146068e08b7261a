/// What an authorization list may say about a key, by the number of its tag in the list.
///
/// The names are those of Google's schema. Numbers that are not here are kept as unknown.
public enum AuthorizationTag: Int, Sendable, Hashable, CaseIterable {
  /// What the key may do: 0 encrypt, 1 decrypt, 2 sign, 3 verify, 6 agree keys, 7 attest other keys.
  case purpose = 1
  /// The kind of the key: 1 RSA, 3 elliptic curve, 4 ML-DSA, 32 AES, 33 triple DES, 128 HMAC.
  case algorithm = 2
  /// The size of the key in bits.
  case keySize = 3
  /// The modes of a block cipher.
  case blockMode = 4
  /// The digests that may be signed: 0 none, 4 SHA-256.
  case digest = 5
  /// The paddings of RSA.
  case padding = 6
  /// Whether a caller may choose the nonce of a cipher.
  case callerNonce = 7
  /// The least length of a message authentication code in bits.
  case minMacLength = 8
  /// The curve: 0 P-224, 1 P-256, 2 P-384, 3 P-521, 4 curve 25519.
  case ecCurve = 10
  /// The public exponent of an RSA key.
  case rsaPublicExponent = 200
  /// The digests of the mask generation function of RSA.
  case mgfDigest = 203
  /// Whether a deleted key cannot come back.
  case rollbackResistance = 303
  /// Whether the key is for the start of the device only.
  case earlyBootOnly = 305
  /// The start of validity, in milliseconds since 1970.
  case activeDateTime = 400
  /// The end of new signatures, in milliseconds since 1970.
  case originationExpireDateTime = 401
  /// The end of verifications, in milliseconds since 1970.
  case usageExpireDateTime = 402
  /// How often the key may be used.
  case usageCountLimit = 405
  /// The identifier of the user whose authentication the key needs.
  case userSecureId = 502
  /// Whether the key needs no authentication of the user.
  case noAuthRequired = 503
  /// The kinds of authentication of the user: bits, 1 password, 2 biometric.
  case userAuthType = 504
  /// How long an authentication of the user counts, in seconds.
  case authTimeout = 505
  /// Whether the key stays usable while the device is worn.
  case allowWhileOnBody = 506
  /// Whether the user has to be present.
  case trustedUserPresenceRequired = 507
  /// Whether the user has to confirm what is signed.
  case trustedConfirmationRequired = 508
  /// Whether the device has to be unlocked by its user.
  case unlockedDeviceRequired = 509
  /// Whether all apps may use the key.
  case allApplications = 600
  /// The app that may use the key.
  case applicationId = 601
  /// When the key was made, by the device's clock, in milliseconds since 1970. Wrong on many devices.
  case creationDateTime = 701
  /// Where the key is from: 0 generated, 2 imported, 4 imported encrypted.
  case origin = 702
  /// The older form of `rollbackResistance`.
  case rollbackResistant = 703
  /// How the device was started.
  case rootOfTrust = 704
  /// The version of Android: 140000 for 14.
  case osVersion = 705
  /// The patch level of the system as YYYYMM.
  case osPatchLevel = 706
  /// The app that asked for the attestation.
  case attestationApplicationId = 709
  /// The brand of the device.
  case idBrand = 710
  /// The name of the device.
  case idDevice = 711
  /// The product.
  case idProduct = 712
  /// The serial number of the device.
  case idSerial = 713
  /// The IMEI.
  case idImei = 714
  /// The MEID.
  case idMeid = 715
  /// The manufacturer.
  case idManufacturer = 716
  /// The model.
  case idModel = 717
  /// The patch level of the vendor's part as YYYYMMDD.
  case vendorPatchLevel = 718
  /// The patch level of the boot image as YYYYMMDD.
  case bootPatchLevel = 719
  /// Whether the attestation was signed by a key of this device alone.
  case deviceUniqueAttestation = 720
  /// Whether the key is one of an identity credential.
  case identityCredentialKey = 721
  /// The second IMEI.
  case idSecondImei = 723
  /// The digest of the installed modules of the system.
  case moduleHash = 724

  /// How the value of a tag is encoded.
  enum Form {
    /// NULL: present or not.
    case flag
    /// INTEGER.
    case number
    /// SET OF INTEGER.
    case numbers
    /// OCTET STRING.
    case bytes
    /// A `RootOfTrust`.
    case rootOfTrust
    /// An `AttestationApplicationID` in an OCTET STRING.
    case applicationID
  }

  /// The tags whose values rules read in the list of the system.
  static let judgedInSoftware: Set<AuthorizationTag> = [.attestationApplicationId]
  /// The tags whose values rules read in the list of the hardware.
  static let judgedInHardware: Set<AuthorizationTag> = [.purpose, .origin, .rootOfTrust, .osPatchLevel]

  var form: Form {
    switch self {
    case .callerNonce, .rollbackResistance, .earlyBootOnly, .noAuthRequired, .allowWhileOnBody,
      .trustedUserPresenceRequired, .trustedConfirmationRequired, .unlockedDeviceRequired, .allApplications,
      .rollbackResistant, .deviceUniqueAttestation, .identityCredentialKey:
      .flag
    case .algorithm, .keySize, .minMacLength, .ecCurve, .rsaPublicExponent, .activeDateTime,
      .originationExpireDateTime, .usageExpireDateTime, .usageCountLimit, .userSecureId, .userAuthType, .authTimeout,
      .creationDateTime, .origin, .osVersion, .osPatchLevel, .vendorPatchLevel, .bootPatchLevel:
      .number
    case .purpose, .blockMode, .digest, .padding, .mgfDigest: .numbers
    case .applicationId, .idBrand, .idDevice, .idProduct, .idSerial, .idImei, .idMeid, .idManufacturer, .idModel,
      .idSecondImei, .moduleHash:
      .bytes
    case .rootOfTrust: .rootOfTrust
    case .attestationApplicationId: .applicationID
    }
  }
}
