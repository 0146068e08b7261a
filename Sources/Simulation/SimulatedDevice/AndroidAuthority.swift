internal import AndroidKeyAttestation
public import ByteCoding
public import Cryptography

/// What stands for Google and the makers of phones: issues the certificates above the keys of simulated Android devices.
///
/// One root, as most genuine devices have it, with three chains below: keys of the trusted environment and of StrongBox
/// that a factory wrote, each one into all of its devices, and keys that Google's server certifies for weeks.
public struct AndroidAuthority: Sendable {
  /// The keys of one factory for one kind of hardware.
  public struct Factory: Sendable {
    /// Signs `key`. P-384.
    public let authority: SigningIdentity
    /// The attestation key that is in all devices of the factory. P-256.
    public let key: SigningIdentity
  }

  /// The root that a gate trusts instead of Google's. P-384.
  public let root: SigningIdentity
  /// The keys of trusted environments.
  public let trustedEnvironment: Factory
  /// The keys of StrongBox chips.
  public let strongBox: Factory
  /// An attestation key of the trusted environments' factory that was leaked: the status list has it.
  public let leakedKey: SigningIdentity
  /// Google's authority for remotely provisioned keys, "Droid CA2". P-384.
  public let remoteAuthority: SigningIdentity
  /// Google's server, "Droid CA3", which certifies the keys of devices. P-256. Google replaces it after some weeks, and
  /// this authority never.
  public let remoteServer: SigningIdentity

  init(
    root: SigningIdentity, trustedEnvironment: Factory, strongBox: Factory, leakedKey: SigningIdentity,
    remoteAuthority: SigningIdentity, remoteServer: SigningIdentity
  ) {
    self.root = root
    self.trustedEnvironment = trustedEnvironment
    self.strongBox = strongBox
    self.leakedKey = leakedKey
    self.remoteAuthority = remoteAuthority
    self.remoteServer = remoteServer
  }

  /// A new authority with new keys, valid from a day before `instant` for ten years.
  public init(at instant: Timestamp) throws(CryptographyError) {
    let root = try Self.issue(
      MintedCertificate.name([10: TestAuthority.organization, 3: "Simulated Android Attestation Root CA"]), .p384,
      under: nil, years: 10, at: instant)
    let trustedEnvironment = try Factory(title: "TEE", under: root, at: instant)
    let remoteAuthority = try Self.issue(
      MintedCertificate.name([10: "Google LLC", 3: "Droid CA2"]), .p384, under: root, pathLength: 2, years: 10,
      at: instant)
    self.init(
      root: root,
      trustedEnvironment: trustedEnvironment,
      strongBox: try Factory(title: "StrongBox", under: root, at: instant),
      leakedKey: try Self.issue(
        MintedCertificate.factoryName("TEE"), .p256, under: trustedEnvironment.authority, years: 10, at: instant),
      remoteAuthority: remoteAuthority,
      remoteServer: try Self.issue(
        MintedCertificate.name([10: "Google LLC", 3: "Droid CA3"]), .p256, under: remoteAuthority, years: 10,
        at: instant))
  }

  /// The status list as Google publishes it, with the leaked key and `serials` of further certificates.
  public func statusList(adding serials: [[UInt8]] = []) -> [UInt8] {
    let entries = ([leakedKey.certificate.serialNumber] + serials).map {
      #""\#(AndroidStatusList.text(ofSerial: $0))":{"status":"REVOKED","reason":"KEY_COMPROMISE"}"#
    }
    return Array(#"{"entries":{\#(entries.joined(separator: ","))}}"#.utf8) + [UInt8(ascii: "\n")]
  }

  /// A certificate below `issuer`, or a root, with a new key; valid for `years` years from a day before `instant`.
  static func issue(
    _ subject: [UInt8], _ curve: ECPrivateKey.Curve, under issuer: SigningIdentity?, pathLength: UInt64? = nil,
    years: Int64, at instant: Timestamp
  ) throws(CryptographyError) -> SigningIdentity {
    let key = try ECPrivateKey(curve)
    let validity = Validity(from: instant, years: years)
    var certificate = MintedCertificate(
      subject: subject, key: key,
      extensions: MintedCertificate.keyIdentifiers(of: key, under: issuer?.key ?? key)
        + MintedCertificate.authority(pathLength: pathLength), around: instant, days: 0)
    (certificate.notBefore, certificate.notAfter) = (validity.notBefore, validity.notAfter)
    let signer = issuer.map { MintedCertificate($0.certificate, key: $0.key) } ?? certificate
    return SigningIdentity(certificate: try Certificate(der: certificate.signed(by: signer)), key: key)
  }
}

extension AndroidAuthority.Factory {
  init(title: String, under root: SigningIdentity, at instant: Timestamp) throws(CryptographyError) {
    authority = try AndroidAuthority.issue(
      MintedCertificate.factoryName(title), .p384, under: root, years: 10, at: instant)
    key = try AndroidAuthority.issue(
      MintedCertificate.factoryName(title), .p256, under: authority, years: 10, at: instant)
  }
}

extension MintedCertificate {
  /// Google numbers the authorities and keys of factories, and says for which hardware they are.
  fileprivate static func factoryName(_ title: String) -> [UInt8] {
    name([5: Hex.encode(SecureRandom.bytes(8)), 12: title])
  }
}
