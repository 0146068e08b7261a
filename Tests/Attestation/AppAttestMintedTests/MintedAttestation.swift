@testable import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice

/// The fixtures of a test: a trusted authority, an untrusted one, and the time.
enum Scene {
  static let appID = "AAABBBCCC1.com.example.app"
  static let now = Timestamp(seconds: 1_780_000_000)
  static let authority = Result { try TestAuthority(appID: appID, at: now) }
  static let otherAuthority = Result { try TestAuthority(appID: appID, at: now) }
  static let nonce = [UInt8](repeating: 7, count: 32)
  static let day: Int64 = 86400

  static func app(claims: AppClaims? = AppClaims()) -> SimulatedApp {
    SimulatedApp(appID: appID, environment: .development, claims: claims)
  }
}

/// An attestation to be minted and verified. It is valid unless a test changes something.
struct MintedAttestation {
  let key: P256PrivateKey
  let authority: TestAuthority
  let otherAuthority: TestAuthority
  var app = Scene.app()
  var alterations = AttestationAlterations()
  /// The client data hash for the device.
  var attestedHash = SHA256.hash(Scene.nonce)

  // The verifier's input.
  var keyID: [UInt8]
  var clientDataHash = SHA256.hash(Scene.nonce)
  var instant = Scene.now
  var environments: Set<AttestEnvironment> = [.development]

  init() throws {
    key = try P256PrivateKey()
    authority = try Scene.authority.get()
    otherAuthority = try Scene.otherAuthority.get()
    keyID = SHA256.hash(key.publicKey.x963)
  }

  func encoded() throws -> [UInt8] {
    var mint = AttestationMint(authority: authority, app: app)
    mint.alterations = alterations
    return try mint.attestation(of: key, clientDataHash: attestedHash, at: Scene.now)
  }

  private func makeVerifier() throws -> AttestationVerifier {
    let appID = try unwrap(AppID(Scene.appID))
    return AttestationVerifier(
      apps: [appID: environments], attestationRoots: [authority.attestationRoot.certificate],
      receiptRoots: [authority.receiptRoot.certificate])
  }

  func verify() throws -> VerifiedAttestation {
    try makeVerifier().verify(
      AttestationObject(encoded()), keyID: unwrap(KeyID(bytes: keyID)),
      clientDataHash: ClientDataHash(bytes: clientDataHash), at: instant)
  }

  func explain() throws -> Explanation {
    try makeVerifier().explain(
      encoded(), keyID: unwrap(KeyID(bytes: keyID)), clientDataHash: ClientDataHash(bytes: clientDataHash), at: instant)
  }

  /// Verifies the attestation, and checks each rule separately. Returns the rejection and the violated rules.
  func broken() throws -> (rejection: AttestationRejection?, steps: Set<AttestationStep>) {
    let object: AttestationObject
    do throws(AttestationRejection) {
      object = try AttestationObject(try encodedOrEmpty())
    } catch {
      return (error, [error.brokenStep])
    }
    let verifier = try makeVerifier()
    let claim = AttestationClaim(
      attestation: object, keyID: try unwrap(KeyID(bytes: keyID)),
      clientDataHash: ClientDataHash(bytes: clientDataHash), instant: instant)
    var steps: Set<AttestationStep> = []
    for step in AttestationStep.allCases {
      do throws(AttestationRejection) { try verifier.check(step, of: claim) } catch { steps.insert(step) }
    }
    do throws(AttestationRejection) {
      _ = try verifier.verify(
        object, keyID: claim.keyID, clientDataHash: claim.clientDataHash, at: claim.instant)
      return (nil, steps)
    } catch {
      return (error, steps)
    }
  }

  private func encodedOrEmpty() throws(AttestationRejection) -> [UInt8] { (try? encoded()) ?? [] }
}

/// Returns `value`, or throws if it is `nil`.
func unwrap<Value>(_ value: Value?) throws -> Value {
  guard let value else { throw MissingValue() }
  return value
}

struct MissingValue: Error {}
