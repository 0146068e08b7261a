import ByteCoding
import CBOR
import Crypto
import Foundation
import MFADomain
import MFAFixtures
import Testing

/// A change that violates one rule of verification.
struct Breach<Subject>: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let fault: WebAuthnRejection
  let act: @Sendable (inout Subject) throws -> Void

  init(_ description: String, _ fault: WebAuthnRejection, _ act: @escaping @Sendable (inout Subject) throws -> Void) {
    testDescription = description
    self.fault = fault
    self.act = act
  }
}

@Suite("Verification rules of security keys")
struct WebAuthnRuleTests {
  private static let challenge = [UInt8](repeating: 7, count: 32)
  private static let asked = Base64URL.encode(challenge)
  private static let handle = Array("user".utf8)
  private static let party = TestSecurityKey.party

  private static func registered(_ credential: VerifiedCredential) throws -> SecurityKey {
    SecurityKey(
      id: UUID(), userID: UUID(), credentialID: credential.id, publicKey: credential.publicKey,
      signatureCount: credential.signatureCount, isBackupEligible: credential.isBackupEligible,
      isBackedUp: credential.isBackedUp, transports: [], name: try DeviceModel("Key"),
      createdAt: Timestamp(seconds: 0))
  }

  private static func registered(_ key: TestSecurityKey) throws -> SecurityKey {
    try registered(party.verify(key.register(asked), challenge: challenge))
  }

  @Test(
    "A-223 a key of each algorithm is registered, with and without self attestation, and verified",
    arguments: CredentialPublicKey.Algorithm.allCases)
  func algorithms(_ algorithm: CredentialPublicKey.Algorithm) throws {
    let key = try TestSecurityKey(algorithm)
    for attestation in [TestSecurityKey.Attestation.none, .selfSigned] {
      let credential = try Self.party.verify(
        key.register(Self.asked, attestation: attestation), challenge: Self.challenge)
      #expect(credential.publicKey.algorithm == algorithm)
    }
    let known = try Self.registered(key)
    let use = try Self.party.verify(
      key.authenticate(Self.asked), by: known, userHandle: Self.handle, challenge: Self.challenge)
    #expect(use.signatureCount == 0 && !use.isBackedUp)
    // The encoded key decodes to the same key.
    #expect(try CredentialPublicKey(cose: known.publicKey.encoded) == known.publicKey)
  }

  // MARK: registration

  struct Registration {
    var key: TestSecurityKey
    var attestation = TestSecurityKey.Attestation.none
    var more: TestSecurityKey.Flags = .attestedCredential
    var credentialID: [UInt8]?
    var userVerification = RelyingParty.UserVerification.preferred

    func verify() throws -> VerifiedCredential {
      let made = try key.register(WebAuthnRuleTests.asked, attestation: attestation, more: more)
      let response = RegistrationResponse(
        credentialID: credentialID ?? made.credentialID, clientDataJSON: made.clientDataJSON,
        attestationObject: made.attestationObject)
      let party = RelyingParty(id: party.id, origins: party.origins, userVerification: userVerification)
      return try party.verify(response, challenge: WebAuthnRuleTests.challenge)
    }
  }

  private static func statement(_ format: String, _ statement: CBORValue) -> TestSecurityKey.Attestation {
    .other(format: format, statement: statement)
  }

  static let registrations: [Breach<Registration>] = [
    Breach("of the other ceremony", .type) { $0.key.type = "webauthn.get" },
    Breach("of an unknown ceremony", .type) { $0.key.type = "WebAuthn.create" },
    Breach("from an unknown origin", .origin) { $0.key.origin = "https://example.org.evil.example" },
    Breach("from an origin with another scheme", .origin) { $0.key.origin = "http://example.org" },
    Breach("from an origin with a slash", .origin) { $0.key.origin = "https://example.org/" },
    Breach("from a subdomain that is not listed", .origin) { $0.key.origin = "https://b.example.org" },
    Breach("from a frame of another site", .crossOrigin) { $0.key.crossOrigin = true },
    Breach("in a page of another site", .crossOrigin) { $0.key.topOrigin = "https://example.com" },
    Breach("for another relying party", .relyingParty) { $0.key.partyID = "a.example.org" },
    Breach("without a touch", .userPresence) { $0.key.flags.remove(.userPresent) },
    Breach("without a PIN where one is required", .userVerification) {
      $0.key.flags.remove(.userVerified)
      $0.userVerification = .required
    },
    Breach("backed up and not eligible", .backupState) { $0.key.flags.insert(.backedUp) },
    Breach("without a credential", .attestedCredential) { $0.more = [] },
    Breach("with trailing bytes", .authenticatorData) { $0.key.trailing = [0] },
    Breach("with extensions that are announced and absent", .extensions) { $0.more.insert(.extensions) },
    Breach("with extensions that are not announced", .authenticatorData) { $0.key.extensions = [0xA0] },
    Breach("with extensions that are not a map", .extensions) {
      $0.more.insert(.extensions)
      $0.key.extensions = [0x80]
    },
    Breach("with numbers as names of extensions", .extensions) {
      $0.more.insert(.extensions)
      $0.key.extensions = CBORValue.map([1: 2]).encoded
    },
    Breach("with bytes after the extensions", .authenticatorData) {
      $0.more.insert(.extensions)
      $0.key.extensions = [0xA0, 0xA0]
    },
    Breach("with an id of 1024 bytes", .credentialID) { $0.key = try TestSecurityKey(idLength: 1024) },
    Breach("with an empty id", .credentialID) { $0.key = try TestSecurityKey(idLength: 0) },
    Breach("with an id other than the client's", .credentialID) { $0.credentialID = [1, 2, 3] },
    Breach("of an algorithm that was not requested", .algorithm) {
      $0.key.publicKey = CBORValue.map([1: 2, 3: -35, -1: 2]).encoded
    },
    Breach("with a statement in the format none", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement("none", .map(["sig": .bytes([1])]))
    },
    Breach("in an unknown format", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement("mine", .map([:]))
    },
    Breach("with self attestation and an invalid signature", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement("packed", .map(["alg": -7, "sig": .bytes([1, 2, 3])]))
    },
    Breach("packed without a signature", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement("packed", .map(["alg": -7]))
    },
    Breach("packed without an algorithm", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement("packed", .map(["sig": .bytes([1])]))
    },
    Breach("packed with an empty chain", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement(
        "packed", .map(["alg": -7, "sig": .bytes([1]), "x5c": .array([])]))
    },
    Breach("packed with a chain of texts", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement(
        "packed", .map(["alg": -7, "sig": .bytes([1]), "x5c": .array(["a"])]))
    },
    Breach("packed with an unknown member", .attestation) {
      $0.attestation = WebAuthnRuleTests.statement(
        "packed", .map(["alg": -7, "sig": .bytes([1]), "ecdaaKeyId": .bytes([1])]))
    },
  ]

  @Test("A-224 a registration that violates one rule is refused", arguments: registrations)
  func registration(_ breach: Breach<Registration>) throws {
    var registration = Registration(key: try TestSecurityKey())
    #expect(throws: Never.self) { try registration.verify() }
    try breach.act(&registration)
    #expect(throws: breach.fault) { try registration.verify() }
  }

  @Test("A-224 a registration without crossOrigin and a registration with extensions are accepted")
  func lenient() throws {
    var registration = Registration(key: try TestSecurityKey())
    registration.key.crossOrigin = nil
    registration.key.origin = "https://a.example.org"
    registration.more.insert(.extensions)
    registration.key.extensions = CBORValue.map(["credProtect": 2]).encoded
    #expect(throws: Never.self) { try registration.verify() }
    // CTAP2 permits a float of any width.
    registration.key.extensions = [0xA1] + CBORValue.text("x").encoded + [0xFA, 0x3F, 0x80, 0, 0]
    #expect(throws: Never.self) { try registration.verify() }
  }

  @Test("A-224 a chain of certificates is read and not verified, in each format that has one")
  func chains() throws {
    let key = try TestSecurityKey()
    let chain = CBORValue.map(["alg": -7, "sig": .bytes([1, 2]), "x5c": .array([.bytes([3])])])
    for format in ["packed", "tpm", "fido-u2f", "apple", "android-key"] {
      let registration = Registration(key: key, attestation: .other(format: format, statement: chain))
      #expect(throws: Never.self, "\(format)") { try registration.verify() }
    }
  }

  @Test("A-224 a truncated attestation object and truncated authenticator data are refused")
  func prefixes() throws {
    let key = try TestSecurityKey()
    let made = try key.register(Self.asked, attestation: .selfSigned)
    for length in 0..<made.attestationObject.count {
      let response = RegistrationResponse(
        credentialID: made.credentialID, clientDataJSON: made.clientDataJSON,
        attestationObject: Array(made.attestationObject[..<length]))
      #expect(throws: WebAuthnRejection.self, "\(length)") {
        try Self.party.verify(response, challenge: Self.challenge)
      }
    }
    let data = try key.authenticatorData(.attestedCredential)
    let hash = Array(SHA256.hash(data: made.clientDataJSON))
    for length in 0..<data.count {
      let object = try key.attestationObject(.none, Array(data[..<length]), clientDataHash: hash)
      let response = RegistrationResponse(
        credentialID: made.credentialID, clientDataJSON: made.clientDataJSON, attestationObject: object)
      #expect(throws: WebAuthnRejection.self, "\(length)") {
        try Self.party.verify(response, challenge: Self.challenge)
      }
    }
  }

  static let badClientData: [(String, WebAuthnRejection)] = [
    ("", .clientData), ("[]", .clientData), ("{\"type\":\"webauthn.create\"}", .clientData),
    ("{\"type\":\"webauthn.create\",\"challenge\":\"BwcH=\",\"origin\":\"https://example.org\"}", .clientData),
    ("{\"type\":\"webauthn.create\",\"challenge\":\"BwcH\",\"origin\":\"https://example.org\"}", .challenge),
    ("{\"type\":\"webauthn.create\",\"challenge\":\"\",\"origin\":\"https://example.org\"}", .challenge),
    ("{\"type\":1,\"challenge\":\"BwcH\",\"origin\":\"https://example.org\"}", .clientData),
  ]

  @Test("A-224 malformed client data and client data with another challenge are refused", arguments: badClientData)
  func clientData(_ json: String, _ fault: WebAuthnRejection) throws {
    let made = try TestSecurityKey().register(Self.asked)
    let response = RegistrationResponse(
      credentialID: made.credentialID, clientDataJSON: Array(json.utf8), attestationObject: made.attestationObject)
    #expect(throws: fault) { try Self.party.verify(response, challenge: Self.challenge) }
  }

  // MARK: keys

  private static let x = [UInt8](P256.Signing.PrivateKey().publicKey.rawRepresentation)
  private static let modulus = [UInt8](repeating: 0xFF, count: 256)

  static let badKeys: [(String, CBORValue, WebAuthnRejection)] = [
    ("not a map", .array([]), .publicKey), ("no algorithm", .map([1: 2, -1: 1]), .publicKey),
    ("the algorithm as a text", .map([1: 2, 3: "ES256"]), .publicKey),
    ("ES384", .map([1: 2, 3: -35, -1: 2, -2: .bytes(x), -3: .bytes(x)]), .algorithm),
    ("another type of key", .map([1: 1, 3: -7, -1: 1, -2: .bytes(low), -3: .bytes(high)]), .publicKey),
    ("another curve", .map([1: 2, 3: -7, -1: 2, -2: .bytes(low), -3: .bytes(high)]), .publicKey),
    ("a compressed point", .map([1: 2, 3: -7, -1: 1, -2: .bytes(low), -3: .boolean(true)]), .publicKey),
    ("a short coordinate", .map([1: 2, 3: -7, -1: 1, -2: .bytes(low), -3: .bytes(Array(high[1...]))]), .publicKey),
    ("not a point of the curve", .map([1: 2, 3: -7, -1: 1, -2: .bytes(high), -3: .bytes(low)]), .publicKey),
    (
      "an additional parameter", .map([1: 2, 3: -7, -1: 1, -2: .bytes(low), -3: .bytes(high), 2: .bytes([1])]),
      .publicKey
    ),
    ("a curve other than Ed25519", .map([1: 1, 3: -8, -1: 4, -2: .bytes(low)]), .publicKey),
    ("an Edwards key of 31 bytes", .map([1: 1, 3: -8, -1: 6, -2: .bytes(Array(low[1...]))]), .publicKey),
    ("an Edwards key with its secret", .map([1: 1, 3: -8, -1: 6, -2: .bytes(low), -4: .bytes(low)]), .publicKey),
    (
      "RSA of 2047 bits", .map([1: 3, 3: -257, -1: .bytes([0x7F] + modulus[1...]), -2: .bytes([1, 0, 1])]), .publicKey
    ),
    (
      "RSA with a leading zero", .map([1: 3, 3: -257, -1: .bytes([0] + modulus), -2: .bytes([1, 0, 1])]), .publicKey
    ),
    (
      "RSA of 4104 bits",
      .map([1: 3, 3: -257, -1: .bytes([UInt8](repeating: 0xFF, count: 513)), -2: .bytes([1, 0, 1])]), .publicKey
    ),
    ("RSA with the exponent 1", .map([1: 3, 3: -257, -1: .bytes(modulus), -2: .bytes([1])]), .publicKey),
    ("RSA with an even exponent", .map([1: 3, 3: -257, -1: .bytes(modulus), -2: .bytes([2])]), .publicKey),
    (
      "RSA with a long exponent", .map([1: 3, 3: -257, -1: .bytes(modulus), -2: .bytes([1, 0, 0, 0, 1])]), .publicKey
    ),
  ]
  private static var low: [UInt8] { Array(x[..<32]) }
  private static var high: [UInt8] { Array(x[32...]) }

  @Test("A-224 a public key that violates a rule of its type is refused", arguments: badKeys)
  func keys(_ name: String, _ key: CBORValue, _ fault: WebAuthnRejection) throws {
    #expect(throws: fault, "\(name)") { try CredentialPublicKey(cose: key.encoded) }
    var registration = Registration(key: try TestSecurityKey())
    registration.key.publicKey = key.encoded
    #expect(throws: fault, "\(name)") { try registration.verify() }
  }

  @Test("A-224 a signature by ES256 is DER without trailing bytes")
  func der() throws {
    let key = try TestSecurityKey()
    let made = try key.authenticate(Self.asked)
    let known = try Self.registered(key)
    let raw = Array(try P256.Signing.ECDSASignature(derRepresentation: made.signature).rawRepresentation)
    for signature in [raw, made.signature + [0], [], Array(made.signature.dropLast())] {
      let response = AuthenticationResponse(
        credentialID: made.credentialID, clientDataJSON: made.clientDataJSON,
        authenticatorData: made.authenticatorData, signature: signature)
      #expect(throws: WebAuthnRejection.signature) {
        try Self.party.verify(response, by: known, userHandle: Self.handle, challenge: Self.challenge)
      }
    }
  }

  // MARK: authentication

  struct Authentication {
    var key: TestSecurityKey
    var more: TestSecurityKey.Flags = []
    var userVerification = RelyingParty.UserVerification.preferred
    var signature: [UInt8]?
    var credentialID: [UInt8]?

    func verify(by known: SecurityKey) throws -> VerifiedUse {
      let made = try key.authenticate(WebAuthnRuleTests.asked, more: more)
      let response = AuthenticationResponse(
        credentialID: credentialID ?? made.credentialID, clientDataJSON: made.clientDataJSON,
        authenticatorData: made.authenticatorData, signature: signature ?? made.signature,
        userHandle: made.userHandle)
      let party = RelyingParty(id: party.id, origins: party.origins, userVerification: userVerification)
      return try party.verify(
        response, by: known, userHandle: WebAuthnRuleTests.handle, challenge: WebAuthnRuleTests.challenge)
    }
  }

  static let authentications: [Breach<Authentication>] = [
    Breach("of the other ceremony", .type) { $0.key.type = "webauthn.create" },
    Breach("from an unknown origin", .origin) { $0.key.origin = "https://evil.example" },
    Breach("from a frame of another site", .crossOrigin) { $0.key.crossOrigin = true },
    Breach("in a page of another site", .crossOrigin) { $0.key.topOrigin = "https://example.org" },
    Breach("for another relying party", .relyingParty) { $0.key.partyID = "evil.example" },
    Breach("without a touch", .userPresence) { $0.key.flags.remove(.userPresent) },
    Breach("without a PIN where one is required", .userVerification) {
      $0.key.flags.remove(.userVerified)
      $0.userVerification = .required
    },
    Breach("backed up and not eligible", .backupState) { $0.key.flags.insert(.backedUp) },
    Breach("eligible for a backup, unlike at registration", .backupEligibility) {
      $0.key.flags.insert(.backupEligible)
    },
    Breach("eligible for a backup, by another key", .signature) {
      $0.key.flags.insert(.backupEligible)
      $0.signature = try TestSecurityKey().sign([1, 2, 3])
    },
    Breach("with a new credential", .attestedCredential) { $0.more = .attestedCredential },
    Breach("with trailing bytes", .authenticatorData) { $0.key.trailing = [0] },
    Breach("with extensions that are not announced", .authenticatorData) { $0.key.extensions = [0xA0] },
    Breach("with extensions that are not a map", .extensions) {
      $0.more = .extensions
      $0.key.extensions = [0x01]
    },
    Breach("of another user", .userHandle) { $0.key.userHandle = Array("other".utf8) },
    Breach("with another credential's id", .credentialUnknown) { $0.credentialID = [1] },
    Breach("with one zero byte as signature", .signature) { $0.signature = [0] },
    Breach("by another key", .signature) { $0.signature = try TestSecurityKey().sign([1, 2, 3]) },
  ]

  @Test("A-224 an authentication that violates one rule is refused", arguments: authentications)
  func authentication(_ breach: Breach<Authentication>) throws {
    var authentication = Authentication(key: try TestSecurityKey())
    let known = try Self.registered(authentication.key)
    #expect(throws: Never.self) { try authentication.verify(by: known) }
    try breach.act(&authentication)
    #expect(throws: breach.fault) { try authentication.verify(by: known) }
  }

  @Test("A-224 an authentication with the user's own handle and extensions is accepted")
  func handles() throws {
    var authentication = Authentication(key: try TestSecurityKey())
    let known = try Self.registered(authentication.key)
    authentication.key.userHandle = Self.handle
    authentication.more = .extensions
    authentication.key.extensions = CBORValue.map(["hmac-secret": .bytes([1])]).encoded
    #expect(throws: Never.self) { try authentication.verify(by: known) }
  }

  @Test(
    "A-224 an authentication with any changed bit is refused, for each algorithm",
    arguments: CredentialPublicKey.Algorithm.allCases)
  func bits(_ algorithm: CredentialPublicKey.Algorithm) throws {
    let key = try TestSecurityKey(algorithm)
    let known = try Self.registered(key)
    let made = try key.authenticate(Self.asked)
    func isAccepted(_ data: [UInt8], _ json: [UInt8], _ signature: [UInt8]) -> Bool {
      let response = AuthenticationResponse(
        credentialID: made.credentialID, clientDataJSON: json, authenticatorData: data, signature: signature)
      return
        (try? Self.party.verify(response, by: known, userHandle: Self.handle, challenge: Self.challenge)) != nil
    }
    #expect(isAccepted(made.authenticatorData, made.clientDataJSON, made.signature))
    for bit in 0..<made.authenticatorData.count * 8 {
      #expect(!isAccepted(made.authenticatorData.flipping(bit), made.clientDataJSON, made.signature), "\(bit)")
    }
    for bit in 0..<made.clientDataJSON.count * 8 {
      #expect(!isAccepted(made.authenticatorData, made.clientDataJSON.flipping(bit), made.signature), "\(bit)")
    }
    for bit in 0..<made.signature.count * 8 {
      #expect(!isAccepted(made.authenticatorData, made.clientDataJSON, made.signature.flipping(bit)), "\(bit)")
    }
  }
}

extension [UInt8] {
  fileprivate func flipping(_ bit: Int) -> [UInt8] {
    var bytes = self
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    return bytes
  }
}
