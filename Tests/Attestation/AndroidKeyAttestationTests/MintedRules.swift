import AndroidKeyAttestation
import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

/// A minted chain and the verifier's input. It is valid unless a test changes something.
struct Attempt {
  var mint: AndroidMint
  var policy = AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer])
  var challenge = AndroidMint.challenge
  var statusList: AndroidStatusList?
  var instant = AndroidMint.instant
  /// The pinned keys; the minted root's key unless set.
  var roots: [[UInt8]]?
  /// Changes the encoded certificates.
  var change: ([[UInt8]]) throws -> [[UInt8]] = { $0 }

  func rejections() throws -> [AndroidRuleRejection] {
    try rejectionsOf(
      change(mint.chain()), policy: policy, roots: (roots ?? [mint.rootKey]).map { try IssuerKey(spki: $0) },
      challenge: challenge, statusList: statusList, at: instant)
  }
}

/// Contents of a `Validity` that devices have written, and that RFC 5280 does not allow.
enum UnreadableDates {
  static let withoutSeconds = utc("7001010000Z") + utc("4801010000Z")

  static let all: [[UInt8]] = [
    withoutSeconds,
    utc("197001010000000") + utc("4801010000000"),
    generalized("700101000000Z") + generalized("480101000000Z"),
    utc("700101000000+0000") + utc("480101000000+0000"),
    generalized("19700101000000.000Z") + generalized("20480101000000.5Z"),
    utc("700001000000Z") + utc("480101000000Z"),
    generalized("99991231235960Z") + generalized("00000000000000Z"),
    DER.integer(0) + DER.integer(2_461_449_600), utc("700101000000Z"), [], DER.null + [0xFF],
  ]

  private static func utc(_ text: String) -> [UInt8] { DER.element(.utcTime, Array(text.utf8)) }
  private static func generalized(_ text: String) -> [UInt8] { DER.element(.generalizedTime, Array(text.utf8)) }
}

/// One broken rule: the codes with which the chain is refused, and a valid twin that differs from it in that alone.
struct BrokenRule: Sendable, CustomTestStringConvertible {
  typealias Change = @Sendable (inout Attempt) throws -> Void

  let name: String
  let codes: [String]
  let isRemote: Bool
  let breaks: Change
  let mends: Change

  /// `mends` makes the twin: the chain without the change unless given.
  init(
    _ name: String, _ codes: String..., remote isRemote: Bool = false, breaks: @escaping Change,
    twin mends: @escaping Change = { _ in }
  ) {
    self.name = name
    self.codes = codes
    self.isRemote = isRemote
    self.breaks = breaks
    self.mends = mends
  }

  var testDescription: String { name }

  func attempt() throws -> Attempt { Attempt(mint: isRemote ? try .remote() : try .factory()) }

  static let all = format + chain + dates + extensions + key + boot + app + policy

  private static let day: Int64 = 86400

  private static func later(_ days: Int64) -> Timestamp {
    Timestamp(seconds: AndroidMint.instant.seconds + days * day)
  }

  private static let format: [BrokenRule] = [
    BrokenRule("no certificates", "chain_length") { $0.change = { _ in [] } },
    BrokenRule("one certificate", "chain_length") { $0.change = { Array($0.prefix(1)) } },
    BrokenRule("eleven certificates", "chain_length") {
      $0.change = { $0 + Array(repeating: $0[3], count: 7) }
    },
    BrokenRule("fifty certificates", "chain_length") { $0.change = { Array(repeating: $0[0], count: 50) } },
    BrokenRule("more than 64 KiB", "chain_size") { $0.change = { $0 + [[UInt8](repeating: 0, count: 65536)] } },
    BrokenRule("a byte after a certificate", "malformed_certificate[1]") {
      $0.change = { replacing(1, in: $0) { $0 + [0] } }
    },
    BrokenRule("two certificates without their last bytes", "malformed_certificate[0]", "malformed_certificate[2]") {
      $0.change = { replacing(0, in: replacing(2, in: $0) { $0.dropLast() }) { $0.dropLast() } }
    },
    BrokenRule("an empty certificate", "malformed_certificate[3]") { $0.change = { replacing(3, in: $0) { _ in [] } } },
    BrokenRule("an extension twice", "malformed_certificate[0]") {
      let value = $0.mint.description.encoded
      $0.mint.certificates[0].extensions.append(
        MintedCertificate.encodedExtension(AndroidMint.attestationExtension, value))
    },
    BrokenRule("an extension that is critical by 66", "malformed_certificate[1]") {
      $0.mint.certificates[1].extensions = [
        MintedCertificate.authority()[0],
        MintedCertificate.encodedExtension("2.5.29.15", critical: 0x42, DER.bitString([4], unused: 2)),
      ]
    } twin: {
      $0.mint.certificates[1].extensions = [
        MintedCertificate.authority()[0],
        MintedCertificate.encodedExtension("2.5.29.15", critical: 1, DER.bitString([4], unused: 2)),
      ]
    },
    BrokenRule("an extension of an issuer that says that it is not critical", "malformed_certificate[1]") {
      $0.mint.certificates[1].extensions.append(MintedCertificate.encodedExtension("1.2.3", critical: 0, []))
    } twin: {
      // Devices write this into their leaves.
      $0.mint.certificates[0].extensions.append(MintedCertificate.encodedExtension("1.2.3", critical: 0, []))
    },
    BrokenRule("an extension of a leaf that is critical by 66", "malformed_certificate[0]") {
      $0.mint.certificates[0].extensions.append(MintedCertificate.encodedExtension("1.2.3", critical: 0x42, []))
    } twin: {
      $0.mint.certificates[0].extensions.append(
        MintedCertificate.encodedExtension("2.5.29.19", critical: 1, DER.sequence()))
    },
    BrokenRule("an issuer of version 1 with extensions", "malformed_certificate[1]") {
      $0.mint.certificates[1].version = DER.context(0, DER.integer(0))
    } twin: {
      // Nothing depends on the version of a leaf.
      $0.mint.certificates[0].version = DER.context(0, DER.integer(0))
    },
    BrokenRule("a version that does not exist", "malformed_certificate[0]") {
      $0.mint.certificates[0].version = DER.context(0, DER.integer(3))
    } twin: {
      $0.mint.certificates[0].version = []
    },
    BrokenRule("an issuer whose dates cannot be read", "malformed_certificate[1]") {
      $0.mint.certificates[1].validity = UnreadableDates.withoutSeconds
    } twin: {
      $0.mint.certificates[0].validity = UnreadableDates.withoutSeconds
    },
    BrokenRule("a root whose dates cannot be read", "malformed_certificate[3]") {
      $0.mint.certificates[3].validity = UnreadableDates.withoutSeconds
    },
    BrokenRule("a leaf whose dates cannot be read, for another challenge", "challenge_differs") {
      $0.mint.certificates[0].validity = UnreadableDates.withoutSeconds
      $0.challenge = [1]
    },
    BrokenRule("a negative serial number", "malformed_certificate[1]") {
      $0.mint.certificates[1].serialNumber = [0x80, 1]
    } twin: {
      $0.mint.certificates[1].serialNumber = [0, 0x80, 1]
    },
    BrokenRule("a serial number with leading zeros", "malformed_certificate[0]") {
      $0.mint.certificates[0].serialNumber = [0, 1]
    },
    BrokenRule("a serial number of 21 bytes", "malformed_certificate[2]") {
      $0.mint.certificates[2].serialNumber = [UInt8](repeating: 1, count: 21)
    } twin: {
      $0.mint.certificates[2].serialNumber = [UInt8](repeating: 1, count: 20)
    },
  ]

  private static let chain: [BrokenRule] = [
    BrokenRule("another name of the issuer", "name_chaining[0]") {
      $0.mint.certificates[0].issuer = MintedCertificate.name([5: "other"])
    },
    BrokenRule("a changed signature of the leaf", "signature[0]") { $0.mint.certificates[0].damagesSignature = true },
    BrokenRule("a changed signature of an authority", "signature[2]") {
      $0.mint.certificates[2].damagesSignature = true
    },
    BrokenRule("a changed signature of the root", "signature[3]") { $0.mint.certificates[3].damagesSignature = true },
    BrokenRule("ECDSA with other parameters than NULL", "signature[0]") {
      $0.mint.certificates[0].algorithmParameters = DER.integer(1)
    } twin: {
      $0.mint.certificates[0].algorithmParameters = DER.null
    },
    BrokenRule("another root", "root_unknown") { $0.roots = [try ECPrivateKey(.p384).spki] },
    BrokenRule("another root that is left out", "root_missing_and_not_signed_by_a_known_root") {
      $0.mint.omitsRoot = true
      $0.roots = [try ECPrivateKey(.p384).spki]
    } twin: {
      $0.mint.omitsRoot = true
      $0.roots = [try ECPrivateKey(.p384).spki, $0.mint.rootKey]
    },
    BrokenRule("a root's name with another key", "signature[2]", "root_unknown") {
      let trusted = $0.mint.rootKey
      $0.roots = [trusted]
      let (genuine, forged) = ($0.mint.certificates[3], try ECPrivateKey(.p384))
      $0.change = { chain in
        var forgery = try AndroidMint.factory()
        forgery.certificates[3] = genuine
        forgery.certificates[3].key = forged
        forgery.certificates[3].subjectPublicKeyInfo = forged.spki
        return Array(chain.prefix(3)) + [try forgery.chain()[3]]
      }
    },
    BrokenRule("a root that is sent twice", "self_issued[3]") { $0.change = { $0 + $0.suffix(1) } },
    // The first of the two has the name of a factory's authority.
    BrokenRule("an expired chain with its root twice", "self_issued[4]", remote: true) {
      $0.instant = later(16)
      $0.change = { $0 + $0.suffix(1) }
    },
    BrokenRule("an authority without the right", "issuer_is_not_a_ca[2]") {
      $0.mint.certificates[2].extensions = MintedCertificate.authority(false)
    } twin: {
      // Genuine attestation certificates say that they are none.
      $0.mint.certificates[1].extensions = MintedCertificate.authority(false)
    },
    // A device with a factory key certifies keys of apps without an attestation, too, and their holders can sign.
    BrokenRule("an app's key below a factory key", "issuer_is_not_a_ca[1]") {
      try certify(in: &$0, MintedCertificate.authority(false))
    } twin: {
      try certify(in: &$0, MintedCertificate.authority())
    },
    BrokenRule("an app's key whose certificate does not speak of authority", "issuer_is_not_a_ca[1]") {
      $0.mint.certificates[1].extensions = [
        MintedCertificate.encodedExtension("2.5.29.15", critical: 0xFF, DER.bitString([0x80], unused: 7))
      ]
    } twin: {
      $0.mint.certificates[1].extensions = MintedCertificate.authority(false)
    },
    BrokenRule("an attestation certificate without the right below the root itself", "issuer_is_not_a_ca[1]") {
      $0.mint.certificates.remove(at: 2)
      $0.mint.certificates[1].extensions = MintedCertificate.authority(false)
    } twin: {
      $0.mint.certificates.remove(at: 2)
    },
    BrokenRule(
      "an attestation certificate without the right below an authority that no factory has", "issuer_is_not_a_ca[1]"
    ) {
      $0.mint.certificates[2].subject = MintedCertificate.name([3: "an authority"])
      $0.mint.certificates[1].extensions = MintedCertificate.authority(false)
    } twin: {
      $0.mint.certificates[2].subject = MintedCertificate.name([3: "an authority"])
    },
    BrokenRule(
      "an attestation certificate of Google's server without the right", "issuer_is_not_a_ca[1]", remote: true
    ) {
      $0.mint.certificates[1].extensions = MintedCertificate.authority(false)
    } twin: {
      $0.mint.certificates[1].extensions = MintedCertificate.authority()
    },
    // Its key signs whatever the owner of the device wants.
    BrokenRule("a certificate of a virtual machine", "virtual_machine_certificate[1]") {
      $0.mint.certificates[1].extensions.append(
        MintedCertificate.encodedExtension("1.3.6.1.4.1.11129.2.1.29.1", []))
    } twin: {
      $0.mint.certificates[1].extensions.append(
        MintedCertificate.encodedExtension("1.3.6.1.4.1.11129.2.1.29.2", []))
    },
    BrokenRule("an authority without extensions", "issuer_is_not_a_ca[2]") { $0.mint.certificates[2].extensions = [] },
    BrokenRule("a path that is too long", "path_length[2]") {
      $0.mint.certificates[2].extensions = MintedCertificate.authority(pathLength: 0)
    } twin: {
      $0.mint.certificates[2].extensions = MintedCertificate.authority(pathLength: 1)
    },
    BrokenRule("an unknown critical extension of a leaf", "critical_extension[0]") {
      $0.mint.certificates[0].extensions.append(MintedCertificate.encodedExtension("1.2.3", critical: 0xFF, []))
    } twin: {
      $0.mint.certificates[0].extensions.append(MintedCertificate.encodedExtension("1.2.3", []))
    },
    BrokenRule("critical certificate policies of an authority", "critical_extension[2]") {
      $0.mint.certificates[2].extensions.append(
        MintedCertificate.encodedExtension("2.5.29.32", critical: 0xFF, DER.sequence()))
    } twin: {
      $0.mint.certificates[2].extensions.append(MintedCertificate.encodedExtension("2.5.29.32", DER.sequence()))
    },
    BrokenRule("an unknown critical extension of an authority", "critical_extension[2]") {
      $0.mint.certificates[2].extensions.append(MintedCertificate.encodedExtension("1.2.3", critical: 0xFF, []))
    } twin: {
      $0.mint.certificates[2].extensions.append(MintedCertificate.encodedExtension("1.2.3", []))
    },
  ]

  private static let dates: [BrokenRule] = [
    BrokenRule("before the attestation certificate is valid", "not_yet_valid[1]") {
      $0.mint.certificates[1].notBefore = later(1)
    } twin: {
      // The device writes the leaf's dates, and the root is trusted by its key.
      $0.mint.certificates[0].notBefore = later(1)
      $0.mint.certificates[3].notBefore = later(1)
    },
    BrokenRule("after the end of a remotely provisioned certificate", "expired[1]", remote: true) {
      $0.instant = later(16)
    } twin: {
      $0.mint.certificates[0].notAfter = later(-1)
      $0.mint.certificates[4].notAfter = later(-1)
      $0.instant = later(14)
    },
    BrokenRule("an authority in the status list, after its end", "revoked[2]") {
      // Factory keys cannot be renewed.
      $0.mint.certificates[1].notAfter = later(-1)
      $0.mint.certificates[2].notAfter = later(-1)
      $0.mint.certificates[2].serialNumber = [0, 0xA0, 1]
      $0.statusList = try list("a001")
    } twin: {
      $0.mint.certificates[2].serialNumber = [0, 0xA0, 1]
      $0.statusList = try list("a0010")
    },
    BrokenRule("a serial number that looks decimal in the status list, provisioning unknown", "revoked[1]") {
      $0.mint.certificates[2].subject = MintedCertificate.name([3: "an authority"])
      $0.mint.certificates[2].notAfter = later(-1)
      $0.mint.certificates[1].serialNumber = [0x12, 0x34]
      $0.statusList = try list("1234")
    } twin: {
      $0.mint.certificates[1].serialNumber = [0x04, 0xD2]
      $0.statusList = try list("1234")
    },
  ]

  private static let extensions: [BrokenRule] = [
    BrokenRule("no attestation extension", "attestation_extension_missing") { $0.mint.attests = false },
    BrokenRule(
      "a certificate in front, signed by the attested key, without an extension",
      "attestation_extension_missing", "attestation_extension[1]", "issuer_is_not_a_ca[1]", "path_length[3]"
    ) {
      try prepend(to: &$0, attesting: nil)
      $0.mint.certificates[2].extensions = MintedCertificate.authority()
      $0.mint.certificates[3].extensions = MintedCertificate.authority(pathLength: 1)
    } twin: {
      $0.mint.certificates[2].extensions = MintedCertificate.authority(pathLength: 1)
    },
    // The known bypass: the attested key vouches for another key, with a description of its own.
    BrokenRule(
      "a certificate in front, signed by the attested key, with its own extension",
      "attestation_extension[1]", "issuer_is_not_a_ca[1]"
    ) {
      try prepend(to: &$0, attesting: $0.mint.description)
    },
    BrokenRule("an attestation extension of an authority", "attestation_extension[2]") {
      let value = $0.mint.description.encoded
      $0.mint.certificates[2].extensions.append(
        MintedCertificate.encodedExtension(AndroidMint.attestationExtension, value))
    },
    BrokenRule("a key description with a byte after it", "malformed_key_description") {
      attest(&$0) { $0.encoded + [0] }
    } twin: {
      attest(&$0) { $0.encoded }
    },
    BrokenRule("a key description without its last byte", "malformed_key_description") {
      attest(&$0) { $0.encoded.dropLast() }
    },
    BrokenRule("a tag twice", "malformed_key_description") {
      $0.mint.description.furtherElements = DER.explicit(702, DER.integer(0))
    } twin: {
      // Unknown tags are kept, not guessed.
      $0.mint.description.furtherElements = DER.explicit(799, DER.integer(0)) + DER.explicit(11, DER.null)
    },
    BrokenRule("a locked boot loader by 66", "malformed_key_description") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(locked: 0x42)
    } twin: {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(locked: 1)
    },
    BrokenRule("a length that is longer than it must be", "malformed_key_description") {
      $0.mint.description.hardware[702] = [0x02, 0x81, 0x01, 0x00]
    },
    BrokenRule("a tag number that is longer than it must be", "malformed_key_description") {
      $0.mint.description.furtherElements = [0xBF, 0x80, 0x86, 0x00, 0x02, 0x05, 0x00]
    },
    BrokenRule("an unknown security level", "malformed_key_description") { $0.mint.description.levels = (3, 3) },
    BrokenRule("an unknown boot state", "malformed_key_description") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(state: 4)
    },
  ]

  private static let key: [BrokenRule] = [
    BrokenRule("another challenge", "challenge_differs") { $0.challenge[31] ^= 1 },
    BrokenRule("a challenge with a byte more", "challenge_differs") { $0.challenge.append(0) },
    BrokenRule("an empty challenge", "challenge_differs") { $0.mint.description.challenge = [] },
    BrokenRule("a key in software", "software_security_level") { $0.mint.description.levels = (0, 0) },
    BrokenRule("an attestation in software", "software_security_level", "security_levels_differ") {
      $0.mint.description.levels = (0, 1)
    },
    BrokenRule("an attestation by another part than the key's", "security_levels_differ") {
      $0.mint.description.levels = (1, 2)
    } twin: {
      $0.mint.description.levels = (2, 2)
    },
    BrokenRule("an imported key", "origin_not_generated_in_hardware") {
      $0.mint.description.hardware[702] = DER.integer(2)
    },
    BrokenRule("an origin by the system's word", "origin_not_generated_in_hardware") {
      $0.mint.description.hardware[702] = nil
      $0.mint.description.software[702] = DER.integer(0)
    },
    BrokenRule("a key for key agreement", "purpose_without_sign") {
      $0.mint.description.hardware[1] = DER.set(of: [DER.integer(6)])
    } twin: {
      // Genuine devices do not sort sets.
      $0.mint.description.hardware[1] = DER.set(of: [DER.integer(6), DER.integer(2)])
    },
    BrokenRule("a purpose by the system's word", "purpose_without_sign") {
      $0.mint.description.hardware[1] = nil
      $0.mint.description.software[1] = DER.set(of: [DER.integer(2)])
    },
    BrokenRule("a key on P-384", "key_is_not_P-256") {
      $0.mint.certificates[0].key = try ECPrivateKey(.p384)
      $0.mint.certificates[0].subjectPublicKeyInfo = $0.mint.certificates[0].key.spki
    },
    BrokenRule("a point that is not on P-256", "key_is_not_P-256") {
      $0.mint.certificates[0].subjectPublicKeyInfo[90] ^= 1
    },
    BrokenRule("an RSA key", "key_is_not_P-256") {
      let modulus = DER.integer(magnitude: [0xC1] + [UInt8](repeating: 0x5A, count: 254) + [1])
      $0.mint.certificates[0].subjectPublicKeyInfo = DER.sequence(
        DER.sequence(DER.objectIdentifier(try #require(ObjectIdentifier("1.2.840.113549.1.1.1"))), DER.null),
        DER.bitString(DER.sequence(modulus, DER.integer(65537))))
    },
    BrokenRule("an ML-DSA key", "key_is_not_P-256") {
      $0.mint.certificates[0].subjectPublicKeyInfo = DER.sequence(
        DER.sequence(DER.objectIdentifier(try #require(ObjectIdentifier("2.16.840.1.101.3.4.3.18")))),
        DER.bitString([UInt8](repeating: 9, count: 1952)))
    },
  ]

  private static let boot: [BrokenRule] = [
    BrokenRule("a root of trust by the system's word", "no_root_of_trust_in_hardware") {
      $0.mint.description.software[704] = $0.mint.description.hardware.removeValue(forKey: 704)
    },
    BrokenRule("an unlocked boot loader", "device_unlocked") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(locked: 0)
    },
    BrokenRule("a system that was not verified", "boot_unverified") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(state: 2)
    },
    BrokenRule("a system whose verification failed", "boot_failed") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(state: 3)
    },
    BrokenRule("a system of the owner's", "boot_selfsigned") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(key: bootKey, state: 1)
      $0.policy.allowedBootKeys = [[UInt8](repeating: 1, count: 32)]
    } twin: {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(key: bootKey, state: 1)
      $0.policy.allowedBootKeys = [bootKey]
    },
    BrokenRule("an allowed boot key on an unlocked device", "device_unlocked") {
      $0.mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(key: bootKey, locked: 0, state: 1)
      $0.policy.allowedBootKeys = [bootKey]
    },
  ]

  private static let app: [BrokenRule] = [
    BrokenRule("another package", "package_differs") { $0.policy.package = "com.example.other" },
    BrokenRule("a package that begins with the app's name", "package_differs") {
      $0.mint.description.software[709] = MintedKeyDescription.application(
        packages: [AndroidMint.package + ".debug"], signers: [AndroidMint.signer])
    } twin: {
      $0.mint.description.software[709] = MintedKeyDescription.application(
        packages: ["com.example.debug", AndroidMint.package], signers: [AndroidMint.signer])
    },
    // Anyone can build and install an app of that name.
    BrokenRule("the app's name, signed by another key", "signer_differs") {
      $0.policy.signers = [SHA256.hash([1])]
    } twin: {
      $0.policy.signers = [SHA256.hash([1]), AndroidMint.signer]
    },
    BrokenRule("an app without signers", "signer_differs") {
      $0.mint.description.software[709] = MintedKeyDescription.application(
        packages: [AndroidMint.package], signers: [])
    },
    BrokenRule("an application id of another structure", "malformed_key_description") {
      $0.mint.description.software[709] = DER.octetString([1, 2, 3])
    },
    BrokenRule("no application id", "app_missing") { $0.mint.description.software[709] = nil },
    BrokenRule("an application id in the hardware's list", "app_missing") {
      $0.mint.description.hardware[709] = $0.mint.description.software.removeValue(forKey: 709)
    },
  ]

  private static let policy: [BrokenRule] = [
    BrokenRule("the trusted environment where StrongBox is required", "security_level_too_low") {
      $0.policy.minimumSecurityLevel = .strongBox
    } twin: {
      $0.policy.minimumSecurityLevel = .strongBox
      $0.mint.description.levels = (2, 2)
    },
    BrokenRule("patches that are a month too old", "patch_level_too_old") {
      $0.policy.minimumPatchLevel = PatchLevel("2026-06")
    } twin: {
      $0.policy.minimumPatchLevel = PatchLevel("2026-05")
    },
    BrokenRule("a patch level of 0", "patch_level_unknown") {
      $0.policy.minimumPatchLevel = PatchLevel("2020-01")
      $0.mint.description.hardware[706] = DER.integer(0)
    } twin: {
      $0.policy.minimumPatchLevel = PatchLevel("2020-01")
      $0.mint.description.hardware[706] = DER.integer(20_200_100)
    },
    BrokenRule("no patch level", "patch_level_unknown") {
      $0.policy.minimumPatchLevel = PatchLevel("2020-01")
      $0.mint.description.hardware[706] = nil
    },
    BrokenRule("a factory key where a remotely provisioned one is required", "not_remotely_provisioned") {
      $0.policy.requiresRemoteProvisioning = true
    },
    // The names below the certificate that the root signed are the words of the factory key's holder.
    BrokenRule("a factory key that calls itself remotely provisioned", "not_remotely_provisioned") {
      $0.policy.requiresRemoteProvisioning = true
      $0.mint.certificates[1].subject = MintedCertificate.name([10: "Google LLC", 3: "Droid CA3"])
    } twin: {
      $0.policy.requiresRemoteProvisioning = true
      $0.mint = try .remote()
    },
  ]

  private static let bootKey = [UInt8](repeating: 0xC0, count: 32)

  private static func replacing(
    _ index: Int, in chain: [[UInt8]], by change: ([UInt8]) -> [UInt8]
  ) -> [[UInt8]] {
    var chain = chain
    chain[index] = change(chain[index])
    return chain
  }

  private static func list(_ serial: String) throws -> AndroidStatusList {
    try AndroidStatusList(Array(#"{"entries":{"\#(serial)":{"status":"REVOKED","reason":"KEY_COMPROMISE"}}}"#.utf8))
  }

  /// Replaces the leaf's extension by one of other bytes.
  private static func attest(_ attempt: inout Attempt, _ value: (MintedKeyDescription) -> [UInt8]) {
    attempt.mint.attests = false
    attempt.mint.certificates[0].extensions.append(
      MintedCertificate.encodedExtension(AndroidMint.attestationExtension, value(attempt.mint.description)))
  }

  /// Inserts a certificate with these extensions between the leaf and the attestation certificate.
  private static func certify(in attempt: inout Attempt, _ extensions: [[UInt8]]) throws {
    let further = try AndroidMint.certificate([3: "Android Keystore Key"], .p256, extensions, days: 30)
    attempt.mint.certificates.insert(further, at: 1)
  }

  /// Signs a further certificate with the attested key, for a key of the attacker's.
  private static func prepend(to attempt: inout Attempt, attesting description: MintedKeyDescription?) throws {
    let value = attempt.mint.description.encoded
    attempt.mint.certificates[0].extensions.append(
      MintedCertificate.encodedExtension(AndroidMint.attestationExtension, value))
    let further = try AndroidMint.certificate([3: "Android Keystore Key"], .p256, [], days: 30)
    attempt.mint.certificates.insert(further, at: 0)
    attempt.mint.attests = description != nil
    // What the attested key signs would be an authority's, if it could.
    attempt.mint.certificates[2].extensions = MintedCertificate.authority()
  }
}
