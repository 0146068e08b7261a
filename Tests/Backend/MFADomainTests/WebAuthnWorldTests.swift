import ByteCoding
import Crypto
import Foundation
import MFAFixtures
import TestSupport
import Testing

@testable import MFADomain

/// A pair of registration and authentication from Web Authentication Level 3, section 16, in hex.
private struct SpecifiedPair: Decodable, Sendable {
  struct Registration: Decodable, Sendable {
    let challenge: String
    let credential_id: String
    let clientDataJSON: String
    let attestationObject: String
  }

  struct Authentication: Decodable, Sendable {
    let challenge: String
    let authenticatorData: String
    let clientDataJSON: String
    let signature: String
  }

  let anchor: String
  let rpId: String
  let origin: String
  let registration: Registration
  let authentication: Authentication

  static func read() throws -> [SpecifiedPair] {
    let file = SharedWorld.url("\(ForeignAttestation.folder)/w3c-level3-section16.json")
    return try JSONDecoder().decode([SpecifiedPair].self, from: Data(contentsOf: file))
  }

  var party: RelyingParty { RelyingParty(id: rpId, origins: [origin]) }

  func register(challenge: [UInt8]? = nil) throws -> VerifiedCredential {
    try party.verify(
      RegistrationResponse(
        credentialID: bytes(registration.credential_id), clientDataJSON: bytes(registration.clientDataJSON),
        attestationObject: bytes(registration.attestationObject)),
      challenge: challenge ?? bytes(registration.challenge))
  }

  func authenticate(
    _ credential: VerifiedCredential, challenge: [UInt8]? = nil, signature: [UInt8]? = nil
  ) throws -> VerifiedUse {
    let key = SecurityKey(
      id: UUID(), userID: UUID(), credentialID: credential.id, publicKey: credential.publicKey,
      signatureCount: credential.signatureCount, isBackupEligible: credential.isBackupEligible,
      isBackedUp: credential.isBackedUp, transports: [], name: try DeviceModel("Key"),
      createdAt: Timestamp(seconds: 0))
    return try party.verify(
      AuthenticationResponse(
        credentialID: credential.id.bytes, clientDataJSON: bytes(authentication.clientDataJSON),
        authenticatorData: bytes(authentication.authenticatorData),
        signature: signature ?? bytes(authentication.signature)),
      by: key, userHandle: [1], challenge: challenge ?? bytes(authentication.challenge))
  }
}

private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

/// The algorithm of the credential that `body` verifies, or the rule that it breaks.
private func verdict(_ body: () throws -> VerifiedCredential) throws -> String {
  do {
    return "\(try body().publicKey.algorithm)"
  } catch let rejection as WebAuthnRejection {
    return rejection.rawValue
  }
}

@Suite(
  "What other projects register: the ceremonies of Web Authentication",
  .enabled(if: SharedWorld.has(ForeignAttestation.folder), "\(SharedWorld.absence(ForeignAttestation.folder))"))
struct WebAuthnWorldTests {
  /// The algorithm of each pair of the specification, or the rule that its registration breaks.
  static let specified = [
    "none-es256": "es256", "packed-self-es256": "es256", "none-es256-long-credential-id": "es256",
    "packed-es256": "es256", "packed-rs256": "rs256", "packed-eddsa": "edDSA", "tpm-es256": "es256",
    "android-key-es256": "es256", "apple-es256": "es256", "fido-u2f-es256": "es256",
    // From a frame of another site.
    "none-es256-crossOrigin": "cross_origin", "none-es256-topOrigin": "cross_origin",
    // Algorithms that the options do not offer.
    "packed-es384": "algorithm", "packed-es512": "algorithm", "packed-ed448": "algorithm",
  ]

  @Test("A-224 each pair of the specification has its verdict, with its own challenges and key")
  func pairs() throws {
    let pairs = try SpecifiedPair.read()
    for pair in pairs {
      let name = String(pair.anchor.trimmingPrefix("sctn-test-vectors-"))
      let verdict = try verdict { try pair.register() }
      #expect(verdict == Self.specified[name], "\(name)")
      guard CredentialPublicKey.Algorithm.allCases.contains(where: { "\($0)" == verdict }) else { continue }
      let credential = try pair.register()
      #expect(credential.id.bytes == (try bytes(pair.registration.credential_id)), "\(name)")
      #expect(throws: Never.self, "\(name)") { try pair.authenticate(credential) }
      // The same with the other challenge, and with a changed signature.
      #expect(throws: WebAuthnRejection.challenge, "\(name)") {
        try pair.register(challenge: bytes(pair.authentication.challenge))
      }
      #expect(throws: WebAuthnRejection.challenge, "\(name)") {
        try pair.authenticate(credential, challenge: bytes(pair.registration.challenge))
      }
      var signature = try bytes(pair.authentication.signature)
      signature[signature.count - 1] ^= 1
      #expect(throws: WebAuthnRejection.signature, "\(name)") {
        try pair.authenticate(credential, signature: signature)
      }
    }
    #expect(pairs.count == 15 && Self.specified.count == 15)
  }

  /// The relying parties for which the objects were made, as far as their names are known.
  static let parties = [
    "127.0.0.1", "6cc3c9e7967a.ngrok.io", "demo.yubico.com", "demo3.yubico.test", "dev.dontneeda.pw",
    "dev2.dontneeda.pw", "duo.test", "example.com", "example.org", "localhost", "webauthn.firstyear.id.au",
    "webauthn.io", "webauthn.org", "webauthntest.azurewebsites.net",
  ]

  /// For each object the beginning of its SHA-256, the algorithm of its credential or the rule that it breaks, its
  /// format and its project.
  ///
  /// Why they are refused:
  ///
  /// - `attestation`: lengths that are not definite, which CTAP 2 forbids (java-webauthn-server, webauthn4j); the
  ///   format of App Attest, which no authenticator has; a self attestation over client data that is not in the file
  ///   (webauthn, webauthn-rs),
  /// - `algorithm`: one that the options do not offer, among them ES512, PS256 and ML-DSA,
  /// - `public_key`: no algorithm in it, or texts in place of numbers,
  /// - `rp_id_hash`: the name of its relying party is not known here; everything before it holds.
  static let objects = """
    739bde90ffbe edDSA packed java-webauthn-server
    c73d69ced0e9 rs256 packed java-webauthn-server
    6e00123f8a1d attestation packed java-webauthn-server
    99f7a096c877 attestation android-safetynet java-webauthn-server
    0602f949916e algorithm packed java-webauthn-server
    cf44ae8f65e5 attestation tpm java-webauthn-server
    5c8c14bc3ee7 attestation packed java-webauthn-server
    e91171499179 attestation packed java-webauthn-server
    a390f8aaaf64 attestation packed java-webauthn-server
    bda4186f13d7 attestation packed java-webauthn-server
    2343c2bd1297 attestation tpm java-webauthn-server
    46cb488233cb attestation fido-u2f java-webauthn-server
    b86beb17f9bb attestation packed java-webauthn-server
    08ea3ac66b01 attestation packed java-webauthn-server
    ce51043e31c8 attestation tpm java-webauthn-server
    f59a959d3939 es256 android-safetynet java-webauthn-server
    fe76968a56aa rp_id_hash tpm java-webauthn-server
    df33169c02e1 es256 fido-u2f java-webauthn-server
    22b79a52b8b0 es256 packed java-webauthn-server
    aedf9893a7e1 es256 packed java-webauthn-server
    03d8a7aca30f algorithm packed java-webauthn-server
    50f777345824 es256 tpm java-webauthn-server
    0f9a7f882ee2 edDSA packed java-webauthn-server
    0b9fb56e6f81 es256 packed java-webauthn-server
    df90b93a2036 es256 none java-webauthn-server
    852900882ddd es256 apple java-webauthn-server
    be1899df0ad8 es256 fido-u2f java-webauthn-server
    5930a6ab91d9 es256 packed java-webauthn-server
    e917a2998e1f public_key fido-u2f java-webauthn-server
    4672ee52e4f6 rp_id_hash none SimpleWebAuthn
    9dcbd8788593 es256 none SimpleWebAuthn
    2804a9ccdb40 es256 fido-u2f SimpleWebAuthn
    423d51f2c9b0 rs256 none SimpleWebAuthn
    71ed24047660 rp_id_hash android-safetynet SimpleWebAuthn
    5efc5381c536 algorithm packed SimpleWebAuthn
    e4fdc8134176 algorithm packed SimpleWebAuthn
    00e9664908e4 rs256 tpm SimpleWebAuthn
    3da3cdca603d es256 packed SimpleWebAuthn
    4191852d4348 es256 android-key SimpleWebAuthn
    a7e5c2144e3c es256 android-key SimpleWebAuthn
    dfec997ea1e2 es256 android-safetynet SimpleWebAuthn
    962bf6e09dbe es256 tpm SimpleWebAuthn
    282480fba639 es256 tpm SimpleWebAuthn
    4ef8d7bc23bd rs256 tpm SimpleWebAuthn
    33a5edbda751 rs256 tpm SimpleWebAuthn
    3d57a7cad5d1 es256 none webauthn
    69499bf5257b es256 packed webauthn
    b537cb59ca2a es256 android-key webauthn
    ff67d3b4b8e2 es256 apple webauthn
    84b354fd9daa es256 tpm webauthn
    cd0bf0c818d9 es256 apple webauthn
    c1bf702bac16 es256 packed webauthn
    b4bad136a711 edDSA packed webauthn
    967a55ac8209 cross_origin none webauthn
    342df2067e76 algorithm packed webauthn
    9a8cad314a12 es256 fido-u2f webauthn
    07aabfaf79b6 es256 packed webauthn
    b3c9b82c9918 attestation packed webauthn
    6f066f741de7 es256 fido-u2f webauthn
    d7eb3ed9a5ab es256 packed webauthn
    1fa6407c25c3 attestation packed webauthn
    aca1fc552aac es256 apple webauthn
    0699c3a3095d es256 fido-u2f py_webauthn
    dcc6fc776fef es256 fido-u2f py_webauthn
    7b72defc96bd edDSA packed py_webauthn
    9f09ff23bb2e es256 none py_webauthn
    1fe868652efc algorithm none py_webauthn
    b47cc7ee35fb algorithm none py_webauthn
    d496e7851c7a es256 apple py_webauthn
    4f395a749444 rs256 tpm py_webauthn
    31d62e53a9af rp_id_hash android-safetynet py_webauthn
    d2aac82b64f1 attestation apple-appattest webauthn4j
    077bf87477a5 user_presence android-safetynet webauthn4j
    c65a171d7d96 rs256 tpm webauthn4j
    81c4edbf4ee6 attestation fido-u2f webauthn4j
    ad9cd478eb36 rs256 android-safetynet webauthn4j
    c7c740a4dc46 attestation apple-appattest webauthn4j
    1561cad67d2c es256 packed webauthn-rs
    fbd92a78aaeb authenticator_data none webauthn-rs
    cbbae34d4aa4 public_key none webauthn-rs
    f6f3325aa2cf es256 none webauthn-rs
    dd49123a1077 es256 fido-u2f webauthn-rs
    f82b81f2d456 es256 tpm webauthn-rs
    0a99bab6ea53 attestation packed webauthn-rs
    8adc8545f804 es256 packed webauthn-rs
    ac654f0a0c51 es256 none webauthn-rs
    331b1d2ca31b rp_id_hash android-key fido2-net-lib
    7b3bb820f16d es256 packed fido2-net-lib
    89c7a11b3f8b es256 fido-u2f fido2-net-lib
    25b4f13a9f06 es256 none fido2-net-lib
    """

  @Test("A-224 each attestation object of another project has its verdict")
  func attestationObjects() throws {
    let objects = try ForeignAttestation.read()
    let parties = Dictionary(
      uniqueKeysWithValues: Self.parties.map { (Array(SHA256.hash(data: Array($0.utf8))), $0) })
    let pairs = Dictionary(
      uniqueKeysWithValues: try SpecifiedPair.read().map { ($0.registration.attestationObject, $0) })
    let expected = Dictionary(
      uniqueKeysWithValues: Self.objects.split(separator: "\n").map { line in
        let words = line.split(separator: " ").map { String($0) }
        return (words[0], words[1])
      })
    let challenge = [UInt8](repeating: 7, count: 32)
    for object in objects {
      let encoded = try bytes(object.attestationObject)
      let found = try verdict {
        // Those of the specification have their own client data and challenge.
        if let pair = pairs[object.attestationObject] { return try pair.register() }
        let data = try WebAuthnAttestationObject(encoded).authenticatorData
        var key = try TestSecurityKey()
        key.origin = "https://\(parties[data.relyingPartyHash] ?? "unknown.example")"
        let clientData = key.clientData("webauthn.create", Base64URL.encode(challenge))
        return try RelyingParty(id: String(key.origin.dropFirst(8)), origins: [key.origin]).verify(
          RegistrationResponse(
            credentialID: data.credential?.id.bytes ?? [], clientDataJSON: clientData,
            attestationObject: encoded), challenge: challenge)
      }
      let name = String(Hex.encode(Array(SHA256.hash(data: encoded))).prefix(12))
      #expect(found == expected[name], "\(name) \(object.repo)")
    }
    #expect(objects.count == 90 && expected.count == 90)
  }

  @Test("W76 the authenticator data of Firefox 115 to 117 with Ed25519 is refused as a malformed key")
  func firefox() throws {
    struct Report: Decodable {
      let source: String
      let authData: String
    }
    let file = SharedWorld.url("\(ForeignAttestation.folder)/firefox117-eddsa-authdata.json")
    let reports = try JSONDecoder().decode([Report].self, from: Data(contentsOf: file))
    for report in reports {
      #expect(throws: WebAuthnRejection.publicKey, "\(report.source)") {
        try WebAuthnAuthenticatorData(bytes(report.authData))
      }
    }
    #expect(reports.count == 2)
  }
}
