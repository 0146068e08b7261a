import AndroidKeyAttestation
import AttestClient
import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

/// A profile and a policy, and the codes with which the policy refuses the profile; none if it accepts it.
struct ProfileCase: Sendable, CustomTestStringConvertible {
  let name: String
  let codes: [String]
  let change: @Sendable (inout AndroidProfile) -> Void
  let require: @Sendable (inout AndroidAppPolicy) -> Void

  init(
    _ name: String, _ codes: String..., change: @escaping @Sendable (inout AndroidProfile) -> Void = { _ in },
    policy: @escaping @Sendable (inout AndroidAppPolicy) -> Void = { _ in }
  ) {
    (self.name, self.codes, self.change, require) = (name, codes, change, policy)
  }

  var testDescription: String { name }

  static let all: [ProfileCase] = [
    ProfileCase(
      "StrongBox where it is required", change: { $0.securityLevel = .strongBox },
      policy: { $0.minimumSecurityLevel = .strongBox }),
    ProfileCase(
      "the trusted environment where StrongBox is required", "security_level_too_low",
      policy: { $0.minimumSecurityLevel = .strongBox }),
    ProfileCase(
      "a remotely provisioned key where it is required", change: { $0.provisioning = .remote },
      policy: { $0.requiresRemoteProvisioning = true }),
    ProfileCase(
      "a factory key where a remotely provisioned one is required", "not_remotely_provisioned",
      policy: { $0.requiresRemoteProvisioning = true }),
    ProfileCase("a leaked key", "revoked[1]", change: { $0.provisioning = .leaked }),
    ProfileCase(
      "a self-signed system that is allowed", change: { $0.boot = .selfSigned },
      policy: { $0.allowedBootKeys = [AndroidDeviceTests.selfSigned.bootKey] }),
    ProfileCase("a self-signed system", "boot_selfsigned", change: { $0.boot = .selfSigned }),
    ProfileCase("an unlocked boot loader", "device_unlocked", "boot_unverified", change: { $0.boot = .unlocked }),
    ProfileCase("patches as new as required", policy: { $0.minimumPatchLevel = PatchLevel("2026-05") }),
    ProfileCase(
      "patches that are a month too old", "patch_level_too_old", change: { $0.patchLevel = PatchLevel("2026-04") },
      policy: { $0.minimumPatchLevel = PatchLevel("2026-05") }),
    ProfileCase(
      "no patch level where one is required", "patch_level_unknown", change: { $0.patchLevel = nil },
      policy: { $0.minimumPatchLevel = PatchLevel("2020-01") }),
    ProfileCase("no patch level where none is required", change: { $0.patchLevel = nil }),
    ProfileCase(
      "another package", "package_differs",
      change: { $0.app = AndroidApp(package: "com.example.other", signer: $0.app.signer) }),
    ProfileCase("another signer", "signer_differs", change: { $0.app.signer = [UInt8](repeating: 1, count: 32) }),
  ]
}

@Suite("Simulated Android devices")
struct AndroidDeviceTests {
  static let now = Timestamp(seconds: 1_780_000_000)
  static let authority = Result { try AndroidAuthority(at: now) }
  static let app = AndroidApp(package: "com.example.app")
  static let selfSigned = {
    var profile = AndroidProfile(app: app)
    profile.boot = .selfSigned
    return profile
  }()
  static let nonce = [UInt8](repeating: 0x5A, count: 32)

  /// Verifies the chain of a new key, and returns the proven key.
  private func verify(
    _ profile: AndroidProfile, policy: AndroidAppPolicy? = nil, at instant: Timestamp = now,
    by authority: AndroidAuthority? = nil
  ) throws -> AttestedAndroidKey {
    let trusted = try Self.authority.get()
    let chain = try AndroidAttestationMint(authority: authority ?? trusted, profile: profile)
      .chain(of: P256PrivateKey(), challenge: Self.nonce, at: Self.now)
    let policy = policy ?? AndroidAppPolicy(package: Self.app.package, signers: [Self.app.signer])
    let root = try IssuerKey(spki: trusted.root.certificate.subjectPublicKeyInfo)
    return try AndroidAttestationVerifier(policy: policy, roots: [root]).verify(
      AndroidCertificateChain(chain), challenge: Self.nonce, statusList: AndroidStatusList(trusted.statusList()),
      at: instant)
  }

  @Test(
    "Each kind of device is accepted, and described as it is",
    arguments: AndroidProfile.SecurityLevel.allCases, [AndroidProfile.Provisioning.factory, .remote])
  func accepted(level: AndroidProfile.SecurityLevel, provisioning: AndroidProfile.Provisioning) throws {
    var profile = AndroidProfile(app: Self.app)
    (profile.securityLevel, profile.provisioning) = (level, provisioning)
    let key = try verify(profile)
    #expect(key.securityLevel == (level == .strongBox ? .strongBox : .trustedEnvironment))
    #expect(key.provisioning == (provisioning == .remote ? .remote : .factory))
    #expect(key.serialNumbers.count == (provisioning == .remote ? 5 : 4) && key.serialNumbers[0] == [1])
    #expect(key.bootState == .verified && key.bootKey == profile.bootKey)
    #expect(key.patchLevel == PatchLevel("2026-05"))
    #expect(key.package == "com.example.app")
  }

  @Test("A policy refuses exactly the devices that it should, by the expected code", arguments: ProfileCase.all)
  func policies(_ example: ProfileCase) throws {
    var profile = AndroidProfile(app: Self.app)
    var policy = AndroidAppPolicy(package: Self.app.package, signers: [Self.app.signer])
    example.change(&profile)
    example.require(&policy)
    do {
      _ = try verify(profile, policy: policy)
      #expect(example.codes.isEmpty)
    } catch let rejection as AndroidAttestationRejection {
      #expect(rejection.codes == example.codes)
    }
  }

  @Test("A certificate of a remotely provisioned key ends after some days, that of a factory never")
  func expiry() throws {
    let later = Self.now.advanced(by: .seconds(30 * 86400))
    var profile = AndroidProfile(app: Self.app)
    #expect(throws: Never.self) { try verify(profile, at: later) }
    profile.provisioning = .remote
    let rejection = #expect(throws: AndroidAttestationRejection.self) { try verify(profile, at: later) }
    #expect(rejection?.codes == ["expired[1]"])
  }

  @Test("Another authority and Google's roots do not vouch for a device")
  func otherAuthority() throws {
    let profile = AndroidProfile(app: Self.app)
    let rejection = #expect(throws: AndroidAttestationRejection.self) {
      try verify(profile, by: AndroidAuthority(at: Self.now))
    }
    #expect(rejection?.codes == ["root_unknown"])
    let chain = try AndroidAttestationMint(authority: Self.authority.get(), profile: profile)
      .chain(of: P256PrivateKey(), challenge: Self.nonce, at: Self.now)
    let policy = AndroidAppPolicy(package: Self.app.package, signers: [Self.app.signer])
    let real = #expect(throws: AndroidAttestationRejection.self) {
      try AndroidAttestationVerifier(policy: policy).verify(
        AndroidCertificateChain(chain), challenge: Self.nonce, statusList: nil, at: Self.now)
    }
    #expect(real?.codes == ["root_unknown"])
  }

  @Test("Devices of a factory share the certificate of their key, others do not")
  func sharedKeys() throws {
    var profile = AndroidProfile(app: Self.app)
    let serials = { (profile: AndroidProfile) in try (0..<2).map { _ in try verify(profile).serialNumbers[1] } }
    #expect(try Set(serials(profile)).count == 1)
    profile.provisioning = .remote
    #expect(try Set(serials(profile)).count == 2)
  }

  @Test("A phone keeps its remotely provisioned attestation key for three weeks, one for each kind of hardware")
  func remoteKeys() throws {
    let authority = try Self.authority.get()
    func issuer(
      of device: SimulatedDeviceName, _ level: AndroidProfile.SecurityLevel = .trustedEnvironment, days: Int64 = 0
    ) throws -> Certificate {
      var profile = AndroidProfile(app: Self.app)
      (profile.provisioning, profile.securityLevel) = (.remote, level)
      let instant = Self.now.advanced(by: .seconds(days * 86_400))
      let chain = try AndroidAttestationMint(authority: authority, profile: profile, device: device)
        .chain(of: P256PrivateKey(), challenge: Self.nonce, at: instant)
      let certificate = try Certificate(der: chain[1])
      #expect(certificate.notBefore < instant && instant < certificate.notAfter)
      return certificate
    }
    let phone = SimulatedDeviceName(seed: "phone")
    let first = try issuer(of: phone)
    let second = try issuer(of: phone)
    #expect(first.serialNumber == second.serialNumber)
    #expect(first.subjectPublicKeyInfo == second.subjectPublicKeyInfo)
    for other in [
      try issuer(of: SimulatedDeviceName(seed: "other")), try issuer(of: phone, .strongBox),
      try issuer(of: phone, days: 21),
    ] {
      #expect(other.serialNumber != first.serialNumber)
      #expect(other.subjectPublicKeyInfo != first.subjectPublicKeyInfo)
    }
  }

  @Test("A key is attested once, proves nonces without a counter, and keeps its chain")
  func keyService() async throws {
    let keys = MemoryKeyStore()
    let device = SimulatedAndroidKeyService(
      authority: try Self.authority.get(), profile: AndroidProfile(app: Self.app), keys: keys, now: { Self.now })
    let keyID = try await device.generateKey()
    await #expect(throws: KeyServiceError.invalidKey) { try await device.proof(by: keyID, nonce: Self.nonce) }
    let chain = try await device.chain(of: keyID, challenge: Self.nonce)
    await #expect(throws: KeyServiceError.invalidKey) { try await device.chain(of: keyID, challenge: Self.nonce) }
    let key = try P256PublicKey(spki: Certificate(der: chain[0]).subjectPublicKeyInfo)
    #expect(Base64.encode(SHA256.hash(key.x963)) == keyID)

    let proof = try await device.proof(by: keyID, nonce: Self.nonce)
    try AndroidKeyProof.verify(proof, nonce: Self.nonce, by: key)
    #expect(throws: AndroidKeyProofRejection.self) {
      try AndroidKeyProof.verify(proof, nonce: SHA256.hash(Self.nonce), by: key)
    }
    // The bytes of the wire, apart from the code that makes them.
    let message = Array("sallyport android key v1".utf8) + [0] + Self.nonce + SHA256.hash(key.x963)
    #expect(key.isValidSignature(proof, for: message))

    let stored = try #require(keys.key(keyID))
    #expect(stored.signCount == 0 && stored.chain == chain.map(Base64.encode))
    #expect(try stored.attestationKeySerial == Certificate(der: chain[1]).serialNumber)
    for unknown in ["", "../../etc/passwd", Base64.encode(Self.nonce)] {
      await #expect(throws: KeyServiceError.invalidKey) { try await device.proof(by: unknown, nonce: Self.nonce) }
    }
  }

  @Test(
    "The Android edition of an app has the name of a package",
    arguments: [
      ("AAABBBCCC1.com.example.app", "com.example.app"), ("AAABBBCCC1.com.example.my-app", "com.example.my_app"),
      ("AAABBBCCC1.com.3d.app", "com.a3d.app"), ("AAABBBCCC1.app", "app.app"),
    ])
  func packages(appID: String, package: String) {
    #expect(AndroidApp(appID: appID).package == package)
    #expect(AndroidAppPolicy.isPackageName(package))
    #expect(AndroidApp(appID: appID).signer == AndroidApp(package: package).signer)
  }
}
