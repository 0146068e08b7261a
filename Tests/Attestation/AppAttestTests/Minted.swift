import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

/// A simulated authority and device, and verifiers that trust it.
struct Minted {
  static let appID = "SALLYPORT1.com.example.app"
  static let instant = Timestamp(seconds: 1_800_000_000)
  static let hash = SHA256.hash([1, 2, 3])

  /// Shared by all tests, because key generation is slow and no test changes the keys.
  static let authority = Result { try TestAuthority(appID: appID, at: instant) }
  static let otherAuthority = Result { try TestAuthority(appID: appID, at: instant) }

  let authority: TestAuthority
  let app: AppID
  let key: P256PrivateKey
  var mint: AttestationMint

  init(environment: SimulatedEnvironment = .development, claims: AppClaims? = nil) throws {
    authority = try Self.authority.get()
    app = try #require(AppID(Self.appID))
    key = try P256PrivateKey()
    mint = AttestationMint(
      authority: authority, app: SimulatedApp(appID: Self.appID, environment: environment, claims: claims))
  }

  var keyID: KeyID { get throws { try #require(KeyID(bytes: SHA256.hash(key.publicKey.x963))) } }
  var attestedKey: AttestedKey {
    get throws {
      AttestedKey(keyID: try keyID, publicKey: key.publicKey.x963, appID: app, environment: .development)
    }
  }

  func verifier(environments: Set<AttestEnvironment> = Set(AttestEnvironment.allCases)) -> AttestationVerifier {
    AttestationVerifier(
      apps: [app: environments], attestationRoots: [authority.attestationRoot.certificate],
      receiptRoots: [authority.receiptRoot.certificate])
  }

  func attestation(at instant: Timestamp = Minted.instant) throws -> [UInt8] {
    try mint.attestation(of: key, clientDataHash: Self.hash, at: instant)
  }

  /// Verifies `bytes` and returns the result. Expects the explanation to agree with it.
  func outcome(
    of bytes: [UInt8], at instant: Timestamp = Minted.instant, by verifier: AttestationVerifier? = nil
  ) throws -> Result<VerifiedAttestation, AttestationRejection> {
    let verifier = verifier ?? self.verifier()
    let (keyID, hash) = (try keyID, ClientDataHash(bytes: Self.hash))
    let outcome = Result { () throws(AttestationRejection) in
      try verifier.verify(AttestationObject(bytes), keyID: keyID, clientDataHash: hash, at: instant)
    }
    let explanation = verifier.explain(bytes, keyID: keyID, clientDataHash: hash, at: instant)
    switch outcome {
    case .success: #expect(explanation.holds)
    case .failure(let rejection):
      #expect(!explanation.holds)
      #expect(explanation.firstBroken?.name == rejection.step)
      // For a nonce, the explanation also decides which of the two values under it differs.
      let shared = rejection.step == "nonce" ? rejection.description.prefix { $0 != ":" } : rejection.description[...]
      let broken = try #require(explanation.firstBroken)
      #expect(broken.detail.hasPrefix(shared))
    }
    return outcome
  }
}
