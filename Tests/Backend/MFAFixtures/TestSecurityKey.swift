import ByteCoding
public import CBOR
import Crypto
import CryptoExtras
import Foundation
public import MFADomain
import Testing

/// A security key in software with one credential, together with its client. A test can change each part of their
/// output.
public struct TestSecurityKey: Sendable {
  private enum Secret: Sendable {
    case es256(P256.Signing.PrivateKey)
    case edDSA(Curve25519.Signing.PrivateKey)
    case rs256(_RSA.Signing.PrivateKey)
  }

  public struct Flags: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let userPresent = Flags(rawValue: 0x01)
    public static let userVerified = Flags(rawValue: 0x04)
    public static let backupEligible = Flags(rawValue: 0x08)
    public static let backedUp = Flags(rawValue: 0x10)
    public static let attestedCredential = Flags(rawValue: 0x40)
    public static let extensions = Flags(rawValue: 0x80)
  }

  public static let party = RelyingParty(id: "example.org", origins: ["https://example.org", "https://a.example.org"])

  private let secret: Secret
  public let credentialID: [UInt8]
  public var origin = "https://example.org"
  public var partyID = "example.org"
  public var flags: Flags = [.userPresent, .userVerified]
  public var signatureCount: UInt32 = 0
  /// `nil` omits the member, as older clients do.
  public var crossOrigin: Bool? = false
  public var topOrigin: String?
  /// Replaces the right type.
  public var type: String?
  public var extensions: [UInt8] = []
  /// Bytes after the end of the authenticator data.
  public var trailing: [UInt8] = []
  /// Replaces the key's own.
  public var publicKey: [UInt8]?
  public var userHandle: [UInt8]?

  /// - Parameter idLength: the number of bytes of the credential's id.
  public init(_ algorithm: CredentialPublicKey.Algorithm = .es256, idLength: Int = 32) throws {
    secret =
      switch algorithm {
      case .es256: .es256(P256.Signing.PrivateKey())
      case .edDSA: .edDSA(Curve25519.Signing.PrivateKey())
      case .rs256: .rs256(try _RSA.Signing.PrivateKey(keySize: .bits2048))
      }
    credentialID = Entropy.system.bytes(idLength)
  }

  /// The public key in COSE.
  public var coseKey: CBORValue {
    get throws {
      switch secret {
      case .es256(let key):
        let point = Array(key.publicKey.rawRepresentation)
        return .map([1: 2, 3: -7, -1: 1, -2: .bytes(Array(point[..<32])), -3: .bytes(Array(point[32...]))])
      case .edDSA(let key):
        return .map([1: 1, 3: -8, -1: 6, -2: .bytes(Array(key.publicKey.rawRepresentation))])
      case .rs256(let key):
        let numbers = try key.publicKey.getKeyPrimitives()
        return .map([
          1: 3, 3: -257, -1: .bytes(Array(numbers.modulus)), -2: .bytes(Array(numbers.publicExponent)),
        ])
      }
    }
  }

  public func sign(_ message: [UInt8]) throws -> [UInt8] {
    switch secret {
    case .es256(let key): Array(try key.signature(for: message).derRepresentation)
    case .edDSA(let key): Array(try key.signature(for: message))
    case .rs256(let key): Array(try key.signature(for: message, padding: .insecurePKCS1v1_5).rawRepresentation)
    }
  }

  public func clientData(_ type: String, _ challenge: String) -> [UInt8] {
    var members: [String: JSONValue] = [
      "type": .string(self.type ?? type), "challenge": .string(challenge), "origin": .string(origin),
    ]
    if let crossOrigin { members["crossOrigin"] = .bool(crossOrigin) }
    if let topOrigin { members["topOrigin"] = .string(topOrigin) }
    return Array(JSONValue.object(members).encoded.utf8)
  }

  public func authenticatorData(_ more: Flags = []) throws -> [UInt8] {
    let all = flags.union(more)
    var data = Array(SHA256.hash(data: Array(partyID.utf8))) + [all.rawValue]
    data += withUnsafeBytes(of: signatureCount.bigEndian) { Array($0) }
    if all.contains(.attestedCredential) {
      data += [UInt8](repeating: 0, count: 16) + [UInt8(credentialID.count >> 8), UInt8(credentialID.count & 0xFF)]
      data += credentialID + (try publicKey ?? coseKey.encoded)
    }
    return data + extensions + trailing
  }

  /// The attestation of a new credential.
  public enum Attestation: Sendable { case none, selfSigned, other(format: String, statement: CBORValue) }

  public func attestationObject(
    _ attestation: Attestation, _ data: [UInt8], clientDataHash: [UInt8]
  ) throws -> [UInt8] {
    let (format, statement): (String, CBORValue) =
      switch attestation {
      case .none: ("none", .map([:]))
      case .selfSigned:
        (
          "packed",
          .map(["alg": try Self.algorithm(of: coseKey), "sig": .bytes(try sign(data + clientDataHash))])
        )
      case .other(let format, let statement): (format, statement)
      }
    return CBORValue.map(["fmt": .text(format), "attStmt": statement, "authData": .bytes(data)]).encoded
  }

  private static func algorithm(of key: CBORValue) -> CBORValue {
    guard case .map(let map) = key else { return .null }
    return map.pairs.first { $0.key == 3 }?.value ?? .null
  }

  /// Makes the credential for a challenge in base64url.
  public func register(
    _ challenge: String, attestation: Attestation = .none, more: Flags = .attestedCredential
  ) throws -> RegistrationResponse {
    let clientData = clientData("webauthn.create", challenge)
    let object = try attestationObject(
      attestation, authenticatorData(more), clientDataHash: Array(SHA256.hash(data: clientData)))
    return RegistrationResponse(
      credentialID: credentialID, clientDataJSON: clientData, attestationObject: object, transports: ["usb", "nfc"])
  }

  /// Signs a challenge in base64url.
  public func authenticate(_ challenge: String, more: Flags = []) throws -> AuthenticationResponse {
    let clientData = clientData("webauthn.get", challenge)
    let data = try authenticatorData(more)
    return AuthenticationResponse(
      credentialID: credentialID, clientDataJSON: clientData, authenticatorData: data,
      signature: try sign(data + Array(SHA256.hash(data: clientData))), userHandle: userHandle)
  }
}

extension RegistrationResponse {
  /// The JSON of `PublicKeyCredential.toJSON`.
  public var json: JSONValue {
    let id = JSONValue.string(Base64URL.encode(credentialID))
    return [
      "id": id, "rawId": id, "type": "public-key", "authenticatorAttachment": "cross-platform",
      "clientExtensionResults": [:],
      "response": [
        "clientDataJSON": .string(Base64URL.encode(clientDataJSON)),
        "attestationObject": .string(Base64URL.encode(attestationObject)),
        "transports": .array(transports.map { .string($0) }),
      ],
    ]
  }
}

extension AuthenticationResponse {
  /// The JSON of `PublicKeyCredential.toJSON`.
  public var json: JSONValue {
    let id = JSONValue.string(Base64URL.encode(credentialID))
    var response: [String: JSONValue] = [
      "clientDataJSON": .string(Base64URL.encode(clientDataJSON)),
      "authenticatorData": .string(Base64URL.encode(authenticatorData)),
      "signature": .string(Base64URL.encode(signature)),
    ]
    if let userHandle { response["userHandle"] = .string(Base64URL.encode(userHandle)) }
    return [
      "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": [:], "response": .object(response),
    ]
  }
}

extension JSONValue {
  /// The same object with `more` over its own members. Records an issue for another kind of value.
  public func with(_ more: [String: JSONValue]) -> JSONValue {
    guard let members else {
      Issue.record("not an object: \(encoded)")
      return self
    }
    return .object(members.merging(more) { $1 })
  }
}

extension Policy {
  /// A policy that enables security keys for `TestSecurityKey.party`.
  public static func withSecurityKeys(
    _ userVerification: RelyingParty.UserVerification = .preferred, _ change: (inout Policy) -> Void = { _ in }
  ) -> Policy {
    var policy = Policy()
    policy.relyingParty = RelyingParty(
      id: TestSecurityKey.party.id, origins: TestSecurityKey.party.origins, userVerification: userVerification)
    change(&policy)
    return policy
  }
}

extension AppClient {
  /// Registers `key` for the session of `token`, and returns the answer.
  public func register(
    _ key: TestSecurityKey, name: String = "Blue", token: String
  ) async throws -> JSONValue {
    let options = try await call("webauthn.registration-options", [:], token: token)
    guard let challenge = options["challenge"]?.text else { return options }
    return try await call(
      "webauthn.register", key.register(challenge).json.with(["name": .string(name)]), token: token)
  }

  /// Gives the second factor with `key` for the session of `token`, and returns the answer.
  public func prove(
    _ key: TestSecurityKey, token: String, _ more: [String: JSONValue] = [:]
  ) async throws -> JSONValue {
    let options = try await call("webauthn.authentication-options", [:], token: token)
    guard let challenge = options["challenge"]?.text else { return options }
    return try await call("webauthn.verify-login", key.authenticate(challenge).json.with(more), token: token)
  }
}
