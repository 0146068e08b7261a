internal import AndroidKeyAttestation
public import ByteCoding
public import Cryptography

/// Makes attestation chains as an Android phone makes them, under a simulated root.
public struct AndroidAttestationMint: Sendable {
  /// The authority that issues the certificates above the keys.
  public let authority: AndroidAuthority
  /// The phone.
  public let profile: AndroidProfile

  private let device: SimulatedDeviceName?

  /// Creates the mint of a phone.
  ///
  /// - Parameter device: The phone whose remotely provisioned attestation key signs. It has one key for each kind of
  ///   hardware, and another one after three weeks. `nil` makes another phone of each chain.
  public init(authority: AndroidAuthority, profile: AndroidProfile, device: SimulatedDeviceName? = nil) {
    self.authority = authority
    self.profile = profile
    self.device = device
  }

  /// The chain of `key` for `challenge`, made at `instant`: DER, leaf first, root last.
  public func chain(
    of key: P256PrivateKey, challenge: [UInt8], at instant: Timestamp
  ) throws(CryptographyError) -> [[UInt8]] {
    try mint(of: key, challenge: challenge, at: instant).chain()
  }

  /// What makes the chain. A test can change each part of it first.
  public func mint(
    of key: P256PrivateKey, challenge: [UInt8], at instant: Timestamp
  ) throws(CryptographyError) -> AndroidMint {
    AndroidMint(
      key: try ECPrivateKey(key),
      issuers: try issuers(at: instant).map { MintedCertificate($0.certificate, key: $0.key) },
      description: description(challenge: challenge, at: instant))
  }

  /// The attestation key of the phone and the authorities above it. The certificate of a remotely provisioned key is
  /// valid for some weeks.
  private func issuers(at instant: Timestamp) throws(CryptographyError) -> [SigningIdentity] {
    let factory = profile.securityLevel == .strongBox ? authority.strongBox : authority.trustedEnvironment
    switch profile.provisioning {
    case .factory: return [factory.key, factory.authority, authority.root]
    case .leaked: return [authority.leakedKey, authority.trustedEnvironment.authority, authority.root]
    case .remote:
      let key = try authority.remoteKey(of: device ?? SimulatedDeviceName(), title: title, at: instant)
      return [key, authority.remoteServer, authority.remoteAuthority, authority.root]
    }
  }

  private var title: String { profile.securityLevel == .strongBox ? "StrongBox" : "TEE" }

  /// The versions are those of genuine devices: of KeyMint 3 with a remotely provisioned key, of KeyMint 1 and Keymaster
  /// 4.1 with a key of the factory.
  private func description(challenge: [UInt8], at instant: Timestamp) -> MintedKeyDescription {
    var description = MintedKeyDescription(
      challenge: challenge, package: profile.app.package, signer: profile.app.signer)
    let level: UInt8 = profile.securityLevel == .strongBox ? 2 : 1
    description.levels = (level, level)
    switch (profile.provisioning, profile.securityLevel) {
    case (.remote, _): description.versions = (300, 300)
    case (_, .trustedEnvironment): description.versions = (100, 100)
    case (_, .strongBox): description.versions = (4, 41)
    }
    description.software[701] = DER.integer(UInt64(max(0, instant.milliseconds)))
    // Of the system, of the vendor's part and of the boot loader.
    let month = profile.patchLevel.map { UInt64($0.year * 100 + $0.month) }
    description.hardware[706] = month.map { DER.integer($0) }
    for tag in [718, 719] { description.hardware[tag] = month.map { DER.integer($0 * 100 + 5) } }
    description.hardware[704] = MintedKeyDescription.rootOfTrust(
      key: profile.bootKey, locked: profile.boot == .unlocked ? 0 : 0xFF, state: bootState)
    return description
  }

  /// Verified, SelfSigned, Unverified.
  private var bootState: UInt8 {
    switch profile.boot {
    case .verified: 0
    case .selfSigned: 1
    case .unlocked: 2
    }
  }
}

extension AndroidAuthority {
  /// The attestation key of one device for the three weeks with `instant`, and a day more at both ends. Its name is its
  /// serial number.
  fileprivate func remoteKey(
    of device: SimulatedDeviceName, title: String, at instant: Timestamp
  ) throws(CryptographyError) -> SigningIdentity {
    let period = Timestamp(seconds: instant.seconds - instant.seconds % Self.periodOfRemoteKeys)
    let seed = device.bytes + Array("\(title) \(period.seconds)".utf8)
    let key = try Self.key(withSeed: SHA256.hash(Array("attestation key ".utf8) + seed))
    var certificate = MintedCertificate(
      subject: [], key: key,
      extensions: MintedCertificate.keyIdentifiers(of: key, under: remoteServer.key) + MintedCertificate.authority()
        + [MintedCertificate.encodedExtension(Self.provisioningInformation, Self.certificatesIssued)],
      around: instant, days: 0)
    certificate.notBefore = period.advanced(by: .seconds(-86_400))
    certificate.notAfter = period.advanced(by: .seconds(Self.periodOfRemoteKeys + 86_400))
    certificate.serialNumber = [0x40] + SHA256.hash(Array("serial number ".utf8) + seed).prefix(15)
    certificate.subject = MintedCertificate.name([3: Hex.encode(certificate.serialNumber), 10: title])
    let der = try certificate.signed(by: MintedCertificate(remoteServer.certificate, key: remoteServer.key))
    return SigningIdentity(certificate: try Certificate(der: der), key: key)
  }

  /// Three weeks, in seconds.
  private static let periodOfRemoteKeys: Int64 = 21 * 86_400

  /// The key on P-256 whose private number is `seed`, in PKCS #8 without the public key, which OpenSSL computes.
  private static func key(withSeed seed: [UInt8]) throws(CryptographyError) -> ECPrivateKey {
    let algorithm: [UInt8] = [
      0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,  // id-ecPublicKey
      0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,  // prime256v1
    ]
    let number = DER.sequence(DER.integer(1), DER.octetString(seed))
    let der = DER.sequence(DER.integer(0), algorithm, DER.octetString(number))
    return try ECPrivateKey(P256PrivateKey(pkcs8DER: der))
  }

  private static let provisioningInformation = "1.3.6.1.4.1.11129.2.1.30"
  /// CBOR: {1: 64, 3: "Google"}.
  private static let certificatesIssued: [UInt8] = [0xA2, 0x01, 0x18, 0x40, 0x03, 0x66] + Array("Google".utf8)
}
