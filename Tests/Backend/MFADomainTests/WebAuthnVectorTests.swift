import ByteCoding
import Foundation
import MFADomain
import Testing

@Suite("Examples of Web Authentication Level 3")
struct WebAuthnVectorTests {
  private static let party = RelyingParty(id: "example.org", origins: ["https://example.org"])
  private static let user = Array("user".utf8)

  private static func register(_ vector: WebAuthnVector, _ challenge: [UInt8]? = nil) throws -> VerifiedCredential {
    try party.verify(
      RegistrationResponse(
        credentialID: vector.credentialID, clientDataJSON: vector.clientDataJSON,
        attestationObject: vector.attestationObject), challenge: challenge ?? vector.challenge)
  }

  private static func key(_ credential: VerifiedCredential) throws -> SecurityKey {
    SecurityKey(
      id: UUID(), userID: UUID(), credentialID: credential.id, publicKey: credential.publicKey,
      signatureCount: credential.signatureCount, isBackupEligible: credential.isBackupEligible,
      isBackedUp: credential.isBackedUp, transports: [], name: try DeviceModel("Key"),
      createdAt: Timestamp(seconds: 0))
  }

  private static func authenticate(
    _ vector: WebAuthnVector, signature: [UInt8]? = nil
  ) throws -> VerifiedUse {
    try party.verify(
      AuthenticationResponse(
        credentialID: vector.credentialID, clientDataJSON: vector.loginClientDataJSON,
        authenticatorData: vector.authenticatorData, signature: signature ?? vector.signature),
      by: key(register(vector)), userHandle: user, challenge: vector.loginChallenge)
  }

  static let accepted: [(WebAuthnVector, CredentialPublicKey.Algorithm)] = [
    (.noneES256, .es256), (.selfES256, .es256), (.longID, .es256), (.packedRS256, .rs256), (.packedEdDSA, .edDSA),
  ]

  @Test("A-224 an example of the W3C is registered, and its use is verified", arguments: accepted)
  func examples(_ vector: WebAuthnVector, _ algorithm: CredentialPublicKey.Algorithm) throws {
    let credential = try Self.register(vector)
    #expect(credential.id.bytes == vector.credentialID && credential.publicKey.algorithm == algorithm)
    #expect(try Self.authenticate(vector).signatureCount == 0)
  }

  @Test(
    "A-224 an example of the W3C from a frame of another site is refused",
    arguments: [WebAuthnVector.crossOrigin, .topOrigin])
  func frames(_ vector: WebAuthnVector) throws {
    #expect(!vector.clientDataJSON.isEmpty && !vector.attestationObject.isEmpty)
    #expect(throws: WebAuthnRejection.crossOrigin) { try Self.register(vector) }
  }

  @Test("A-224 an example of the W3C is refused with another signature or challenge", arguments: accepted)
  func changed(_ vector: WebAuthnVector, _: CredentialPublicKey.Algorithm) throws {
    for index in [0, vector.signature.count / 2, vector.signature.count - 1] {
      var signature = vector.signature
      signature[index] ^= 1
      #expect(throws: WebAuthnRejection.signature) { try Self.authenticate(vector, signature: signature) }
    }
    #expect(throws: WebAuthnRejection.challenge) { try Self.register(vector, vector.loginChallenge) }
  }

  @Test("A-224 an example with self attestation is refused after a change of its statement")
  func statement() throws {
    var object = WebAuthnVector.selfES256.attestationObject
    // The changed byte is in the middle of the signature.
    object[60] ^= 1
    #expect(throws: WebAuthnRejection.attestation) {
      try Self.party.verify(
        RegistrationResponse(
          credentialID: WebAuthnVector.selfES256.credentialID,
          clientDataJSON: WebAuthnVector.selfES256.clientDataJSON, attestationObject: object),
        challenge: WebAuthnVector.selfES256.challenge)
    }
  }
}
