import ByteCoding
import Cryptography
import TestSupport
import Testing

@testable import AppAttest

@Suite(
  "Attestation objects of other projects",
  .enabled(if: SharedWorld.has(ForeignAttestation.folder), "\(SharedWorld.absence(ForeignAttestation.folder))"))
struct WorldTests {
  /// The attestations of App Attest: the beginning of the SHA-256, and the rules that break with the object's own app,
  /// key and client data hash when its receipt was made. Both receipts were changed after Apple had signed them: OpenSSL
  /// refuses their signatures, too.
  static let verdicts = ["d2aac82b64f1": ["receipt_signature"], "c7c740a4dc46": ["receipt_signature"]]

  @Test("Each attestation of App Attest has its verdict with its own values; no other format is one")
  func verdicts() throws {
    let objects = try ForeignAttestation.read()
    var found: [String: [String]] = [:]
    for object in objects {
      let bytes = try #require(Hex.decode(object.attestationObject))
      guard let attestation = try? AttestationObject(bytes) else { continue }
      let receipt = attestation.receipt
      let app = try #require(AppID(receipt.appID))
      let (keyID, hash) = (KeyID(ofPublicKey: receipt.publicKey), try #require(receipt.clientDataHash))
      let verifier = AttestationVerifier(
        apps: [app: Set(AttestEnvironment.allCases)], attestationRoots: [AppleRoots.appAttestation],
        receiptRoots: [AppleRoots.appleRootG3])
      func broken(_ hash: [UInt8], _ keyID: KeyID, at instant: Timestamp) -> [String] {
        verifier.explain(bytes, keyID: keyID, clientDataHash: ClientDataHash(bytes: hash), at: instant).steps
          .filter { $0.outcome == .broken }.map(\.name)
      }
      let name = String(Hex.encode(SHA256.hash(bytes)).prefix(12))
      found[name] = broken(hash, keyID, at: receipt.creationTime)
      // Each of the object's own values counts.
      #expect(broken(SHA256.hash(hash), keyID, at: receipt.creationTime).contains("nonce"), "\(name)")
      #expect(broken(hash, KeyID(ofPublicKey: hash), at: receipt.creationTime).contains("key_id"), "\(name)")
      #expect(broken(hash, keyID, at: .now()).contains("certificate_chain"), "\(name)")
    }
    #expect(found == Self.verdicts)
    #expect(objects.count == 90)
  }
}
