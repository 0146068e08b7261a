public import Crypto
public import Foundation
public import MFADomain
import Testing

/// A phone with an app: an app instance, a key for signing in, and the stored names.
public struct TestPhone: Sendable {
  public let app: AppInstance
  public var key = P256.Signing.PrivateKey()
  public let username: String
  public let deviceID: String
  public let number = "+1234567890"

  public init(username: String = "testuser", deviceID: String = UUID().uuidString, app: AppInstance = .genuine()) {
    self.app = app
    self.username = username
    self.deviceID = deviceID
  }

  /// The number as a type of the domain.
  public var enrolledNumber: PhoneNumber {
    get throws { try PhoneNumber(number) }
  }

  /// The public key in the 65 bytes of `SecKeyCopyExternalRepresentation`, in base64.
  public var publicKey: String { key.publicKey.x963Representation.base64EncodedString() }

  /// Signs the decoded challenge, in DER as `SecKeyCreateSignature` does.
  public func sign(_ challenge: String) throws -> String {
    try key.signature(for: Data(base64Encoded: challenge) ?? Data()).derRepresentation.base64EncodedString()
  }

  public func enrolment(method: String = "secureEnclave") -> JSONValue {
    var body: [String: JSONValue] = [
      "username": .string(username), "phoneNumber": .string(number), "method": .string(method),
      "deviceId": .string(deviceID), "deviceModel": "iPhone 15 Pro",
    ]
    if method == "secureEnclave" { body["publicKey"] = .string(publicKey) }
    return .object(body)
  }

  public var naming: JSONValue { ["username": .string(username), "deviceId": .string(deviceID)] }
}

extension TestBackend {
  @discardableResult
  public func enrol(_ phone: TestPhone, method: String = "secureEnclave", token: String? = nil) async throws -> Answer {
    try await post("/mfa/enroll", phone.enrolment(method: method), as: phone.app, token: token)
  }

  /// Enrols `phone` with a link code of `first`. `token` is the session of `first`.
  public func link(_ phone: TestPhone, to first: TestPhone, token: String) async throws -> Answer {
    let code = try await post("/mfa/link", [:], as: first.app, token: token)["linkCode"]
    var body = try #require(phone.enrolment().members)
    body["linkCode"] = code ?? nil
    return try await post("/mfa/enroll", .object(body), as: phone.app)
  }

  public func challenge(_ phone: TestPhone) async throws -> Answer {
    try await post("/auth/initiate", phone.naming, as: phone.app)
  }

  /// The body that answers `challenge` with a signature of `phone`.
  public func proof(_ phone: TestPhone, of challenge: Answer) throws -> JSONValue {
    [
      "username": .string(phone.username), "deviceId": .string(phone.deviceID),
      "challengeId": challenge["challengeId"] ?? nil,
      "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
    ]
  }

  /// Signs in with the key.
  public func signIn(_ phone: TestPhone) async throws -> Answer {
    let challenge = try await challenge(phone)
    return try await post("/auth/verify-signature", proof(phone, of: challenge), as: phone.app)
  }

  /// Enrols and signs in. Returns the access token.
  public func token(_ phone: TestPhone) async throws -> String {
    try await enrol(phone)
    return try await signIn(phone)["token"]?.text ?? ""
  }
}
