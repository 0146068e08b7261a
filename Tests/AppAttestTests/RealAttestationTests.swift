import AppAttest
import ByteCoding
import Testing

@Suite("Attestations from real devices", .enabled(if: Vectors.arePresent, Vectors.absence))
struct RealAttestationTests {
  @Test("A real attestation verifies at its instant", arguments: Vectors.attestations)
  func verifies(_ vector: Vectors.Attestation) throws {
    let app = try #require(AppID(vector.appID))
    let verifier = AttestationVerifier(
      apps: [app: [.development, .production]], attestationRoots: [AppleRoots.appAttestation],
      receiptRoots: [AppleRoots.appleRootG3])
    let verified = try verifier.verify(
      AttestationObject(#require(Base64.decode(vector.attestation))), keyID: #require(KeyID(base64: vector.keyId)),
      clientDataHash: ClientDataHash(bytes: #require(Base64.decode(vector.clientDataHash))),
      at: #require(Timestamp(rfc3339: vector.verifyAt)))
    #expect(verified.key.publicKey == Base64.decode(vector.publicKeyX963))
  }
}
