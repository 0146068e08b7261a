internal import AndroidKeyAttestation
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import SimulatedDevice

// Attempts with a key of Android.
extension Attack {
  /// Attempts to be admitted with a signature of the registered key over something else than the gate asks for.
  static let keyProofs: [Attack] = [
    proof("an App Attest assertion by an Android key") { prober, device, nonce throws(Failure) in
      do throws(CryptographyError) {
        return try AssertionMint(app: prober.app).assertion(
          by: device.key, clientDataHash: AppAttestProbeDevice.clientDataHash(nonce), signCount: 1)
      } catch {
        throw Failure(cryptography: error)
      }
    },
    proof("a signature of the nonce alone") { _, device, nonce throws(Failure) in
      try device.signature(over: Hex.decode(nonce) ?? [])
    },
    proof("a signature of the nonce's digits") { _, device, nonce throws(Failure) in
      try device.signature(over: domain + Array(nonce.utf8) + SHA256.hash(device.key.publicKey.x963))
    },
    proof("a signature that names another key") { prober, device, nonce throws(Failure) in
      let other = try prober.unregisteredAndroid()
      return try device.signature(over: domain + (Hex.decode(nonce) ?? []) + SHA256.hash(other.key.publicKey.x963))
    },
    proof("a signature that is not in DER") { _, device, nonce throws(Failure) in
      do throws(CryptographyError) {
        return try device.key.es256Signature(
          for: domain + (Hex.decode(nonce) ?? []) + SHA256.hash(device.key.publicKey.x963))
      } catch {
        throw Failure(cryptography: error)
      }
    },
  ]

  private static let domain = AndroidKeyProof.domain

  private static func proof(
    _ name: String,
    _ make: @escaping @Sendable (Prober, AndroidProbeDevice, _ nonce: String) throws(Failure) -> [UInt8]
  ) -> Attack {
    Attack(.credentials, name, [400, 401], needsDevice: true) { prober throws(Failure) in
      let (device, nonce) = (try prober.android, try await prober.challenge())
      return try await prober.upgrade(device.lines(make(prober, device, nonce), nonce: nonce))
    }
  }

  /// Attempts to register a key of Android that no genuine device has.
  static let chains: [Attack] = [
    chain("a chain of an unknown authority") { prober, device, nonce throws(Failure) in
      let other = try Prober.unknownAuthority(for: prober.app.appID).androidAuthority()
      return try device.chain(over: nonce, by: other)
    },
    Attack(.registration, "a key of Android that is registered", [409], needsDevice: true) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.register(chain: prober.android.chain(over: nonce), nonce: nonce)
    },
    profile("another app") { $0.app = AndroidApp(package: "com.example.other", signer: $0.app.signer) },
    profile("the app, signed by another developer") {
      $0.app = AndroidApp(package: $0.app.package, signer: SecureRandom.bytes(32))
    },
    profile("an unlocked boot loader") { $0.boot = .unlocked },
    profile("a leaked key of a factory") { ($0.provisioning, $0.securityLevel) = (.leaked, .trustedEnvironment) },
    minted("a key in software") { $0.description.levels = (0, 0) },
    minted("an imported key") { $0.description.hardware[702] = DER.integer(2) },
    minted("a key that may not sign") { $0.description.hardware[1] = DER.set(of: [DER.integer(6)]) },
    minted("a key whose hardware reports no start of the device") { $0.description.hardware[704] = nil },
    minted("a leaf with a changed signature") { $0.certificates[0].damagesSignature = true },
    // The known bypass: an attested key vouches for another one, with an attestation of its own.
    minted("a certificate in front, signed by an attested key") { mint throws(CryptographyError) in
      mint.certificates[0].extensions.append(
        MintedCertificate.encodedExtension(AndroidMint.attestationExtension, mint.description.encoded))
      let leaf = mint.certificates[0]
      mint.certificates.insert(
        MintedCertificate(
          subject: leaf.subject, key: try ECPrivateKey(.p256), extensions: [], around: leaf.notBefore, days: 20000),
        at: 0)
    },
    changed("a chain with its root twice") { $0 + $0.suffix(1) },
    changed("a chain without its leaf") { Array($0.dropFirst()) },
    changed("a chain in reverse") { $0.reversed() },
    changed("a leaf alone") { Array($0.prefix(1)) },
    changed("no certificates") { _ in [] },
    changed("50 certificates", [400, 401, 413]) { Array(repeating: $0[0], count: 50) },
    changed("a certificate that was cut") { $0.dropLast() + $0.suffix(1).map { Array($0.dropLast(100)) } },
    Attack(.registration, "a chain for another nonce", refused, needsDevice: true) { prober throws(Failure) in
      let chain = try prober.unregisteredAndroid().chain(over: try await prober.challenge())
      return try await prober.register(chain: chain, nonce: prober.challenge())
    },
    Attack(.registration, "a chain for a nonce that the gate did not issue", [401], needsDevice: true) {
      prober throws(Failure) in
      let nonce = String(repeating: "0123456789abcdef", count: 4)
      return try await prober.register(chain: prober.unregisteredAndroid().chain(over: nonce), nonce: nonce)
    },
    chain("an App Attest attestation as a chain") { prober, _, nonce throws(Failure) in
      [try prober.unregisteredDevice().attestation(over: nonce, by: prober.authority)]
    },
    Attack(.registration, "a chain as an App Attest attestation", [400], needsDevice: true) { prober throws(Failure) in
      let (nonce, device) = (try await prober.challenge(), try prober.unregisteredAndroid())
      let chain = try device.chain(over: nonce)
      return try await prober.post(
        JSONOutput.line(["keyId": device.keyID, "attestation": Base64.encode(chain[0]), "nonce": nonce]))
    },
    Attack(.registration, "a platform that does not exist", [400], needsDevice: true) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.register(
        chain: prober.unregisteredAndroid().chain(over: nonce), nonce: nonce, platform: "windows")
    },
  ]

  private static let refused = [400, 401, 403]

  /// A chain that `make` makes for a new device.
  private static func chain(
    _ name: String, _ expected: [Int] = refused,
    _ make: @escaping @Sendable (Prober, AndroidProbeDevice, _ nonce: String) throws(Failure) -> [[UInt8]]
  ) -> Attack {
    Attack(.registration, name, expected, needsDevice: true) { prober throws(Failure) in
      let (device, nonce) = (try prober.unregisteredAndroid(), try await prober.challenge())
      return try await prober.register(chain: make(prober, device, nonce), nonce: nonce)
    }
  }

  private static func profile(_ name: String, _ change: @escaping @Sendable (inout AndroidProfile) -> Void) -> Attack {
    chain(name) { _, device, nonce throws(Failure) in
      var profile = device.profile
      change(&profile)
      return try device.chain(over: nonce, as: profile)
    }
  }

  private static func minted(
    _ name: String, _ change: @escaping @Sendable (inout AndroidMint) throws(CryptographyError) -> Void
  ) -> Attack {
    chain(name) { _, device, nonce throws(Failure) in try device.chain(over: nonce, change) }
  }

  private static func changed(
    _ name: String, _ expected: [Int] = refused, _ change: @escaping @Sendable ([[UInt8]]) -> [[UInt8]]
  ) -> Attack {
    chain(name, expected) { _, device, nonce throws(Failure) in change(try device.chain(over: nonce)) }
  }
}
