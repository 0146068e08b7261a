import AndroidKeyAttestation
import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import SQLiteStore
import SimulatedDevice

/// A gate for Android devices without its network, which trusts the root of one mint.
struct AndroidBench {
  let clock = ManualClock(AndroidMint.instant)
  let store: SQLiteStore
  let registrar: Registrar
  let gate: Gate
  let revocations: RevokedCertificates
  private let folder: TemporaryFolder
  private let challenges = Challenges(ring: .random())

  static let policy = AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer])

  init(
    trusting mint: AndroidMint, _ policies: [AndroidAppPolicy] = [AndroidBench.policy], ios: [AppPolicy] = [],
    risks: [String: RiskPolicy] = [:], maximumAge: Duration? = nil, stopwatch: Stopwatch = .none
  ) throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
    revocations = RevokedCertificates(maximumAge: maximumAge)
    (registrar, gate) = try Self.rules(
      mint, policies, ios, .production, revocations, store, challenges, clock, risks: risks, stopwatch: stopwatch)
  }

  /// The same store under another configuration.
  func rules(
    trusting mint: AndroidMint, _ policies: [AndroidAppPolicy] = [AndroidBench.policy],
    environment: AttestEnvironment = .production, risks: [String: RiskPolicy] = [:],
    enforcement: AttestationKeyEnforcement? = nil, registry: (any KeyRegistry)? = nil,
    report: @escaping @Sendable (AndroidVerification.Revocation) -> Void = { _ in }
  ) throws -> (registrar: Registrar, gate: Gate) {
    try Self.rules(
      mint, policies, [], environment, revocations, registry ?? store, challenges, clock, risks: risks,
      enforcement: enforcement, report: report)
  }

  private static func rules(
    _ mint: AndroidMint, _ policies: [AndroidAppPolicy], _ ios: [AppPolicy], _ environment: AttestEnvironment,
    _ revocations: RevokedCertificates, _ registry: any KeyRegistry, _ challenges: Challenges, _ clock: ManualClock,
    risks: [String: RiskPolicy], enforcement: AttestationKeyEnforcement? = nil, stopwatch: Stopwatch = .none,
    report: @escaping @Sendable (AndroidVerification.Revocation) -> Void = { _ in }
  ) throws -> (Registrar, Gate) {
    guard
      let apps = AllowedApps(ios, android: policies, androidRisks: risks, androidEnvironment: environment)
    else {
      throw FixtureError.unexpected
    }
    let registrar = Registrar(
      apps: apps,
      verifier: AttestationVerifier(apps: apps.environments, attestationRoots: [], receiptRoots: []),
      android: AndroidVerification(
        roots: [try IssuerKey(spki: mint.rootKey)], revocations: revocations, report: report),
      challenges: challenges, registry: registry, clock: clock.wallClock, enforcement: enforcement)
    let rule = try AssertionRule(apps: apps, challenges: challenges, registry: registry, stopwatch: stopwatch)
    return (registrar, Gate(rules: [rule], clock: clock.wallClock))
  }

  func nonce() throws -> Nonce {
    guard let challenge = challenges.issue(at: clock.now) else { throw FixtureError.unexpected }
    return challenge.nonce
  }

  /// The registration of the mint's key over `nonce`.
  func claim(_ mint: AndroidMint, over nonce: Nonce) throws -> AndroidRegistrationClaim {
    var mint = mint
    mint.description.challenge = nonce.bytes
    return AndroidRegistrationClaim(chain: try mint.chain().map(Base64.encode), nonce: nonce.text)
  }

  @discardableResult
  func register(_ mint: AndroidMint) async throws -> RegisteredKey {
    try await registrar.register(try claim(mint, over: try nonce()))
  }

  /// The reason why the mint's key is not registered; `nil` if it is.
  func denial(_ mint: AndroidMint, by other: Registrar? = nil) async throws -> Denial? {
    let claim = try claim(mint, over: try nonce())
    do throws(Denial) {
      _ = try await (other ?? registrar).register(claim)
      return nil
    } catch {
      return error
    }
  }

  /// The reason why the claim is not admitted; `nil` if it is.
  func denial(_ claim: AdmissionClaim, at other: Gate? = nil) async -> Denial? {
    do throws(Denial) {
      _ = try await (other ?? gate).admit(claim)
      return nil
    } catch {
      return error
    }
  }
}

extension AndroidMint {
  var publicKey: P256PublicKey { get throws { try P256PublicKey(spki: key.spki) } }
  var keyID: KeyID { get throws { KeyID(ofPublicKey: try publicKey.x963) } }

  /// The proof of the mint's key over `nonce`.
  func proof(over nonce: Nonce, keyID: KeyID? = nil) throws -> AdmissionClaim {
    let message = AndroidKeyProof.message(nonce: nonce.bytes, publicKey: try publicKey)
    let signature = try key.signature(for: message, digest: .sha256)
    return AdmissionClaim(headers: [
      .keyID: try (keyID ?? self.keyID).base64, .data: Base64.encode(signature), .nonce: nonce.text,
    ])
  }
}
