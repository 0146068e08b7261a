import ByteCoding
import Foundation
import Locking
import MFAClient
import MFAWire

/// A backend that records requests and answers from a script.
final class StandInBackend: MFABackend {
  /// A request: the name of the operation, the fields as JSON, and the token of the session.
  struct Received: Sendable {
    let name: String
    let body: [UInt8]
    let token: String?

    func decoded<Request: WireValue>(as type: Request.Type) throws -> Request {
      try JSONDecoder().decode(Request.self, from: Data(body))
    }
  }

  private struct State {
    var received: [Received] = []
    var errors: [NetworkError] = []
    var refusedSignatures: [NetworkError] = []
    var refusedDowngrades: [NetworkError] = []
    var unsentCodes: [NetworkError] = []
    var refusedProofs: [NetworkError] = []
    /// What happens before the answer of an operation arrives.
    var interludes: [String: @Sendable () async -> Void] = [:]
    /// The credential of the account's security key.
    var credential = ""
    var method = MFAMethod.secureEnclave
    var challenge = Base64.encode([UInt8](repeating: 9, count: 32))
    var scope = "full"
    var status = MFAStatus.standIn(methods: ["totp", "email", "backup_code"])
    var trustsDevices = true
    /// The device, if it is enrolled.
    var device: DeviceStatus?
  }

  private let state = LockedValue(State())

  var received: [Received] { state.withLock(\.received) }

  /// The method of the device, the challenge in base64, and the scope of sessions.
  func answer(method: MFAMethod? = nil, challenge: String? = nil, scope: String? = nil) {
    state.withLock { state in
      state.method = method ?? state.method
      state.challenge = challenge ?? state.challenge
      state.scope = scope ?? state.scope
    }
  }

  /// The status of the second factor, and whether a device that asks for it is trusted.
  func answer(status: MFAStatus? = nil, trustsDevices: Bool? = nil) {
    state.withLock { state in
      state.status = status ?? state.status
      state.trustsDevices = trustsDevices ?? state.trustsDevices
    }
  }

  /// Makes the next calls fail: before they are carried out, or after it if the error leaves that open.
  func fail(_ errors: NetworkError...) { state.withLock { $0.errors += errors } }

  /// Makes the next verifications of signatures fail.
  func failVerifications(_ errors: NetworkError...) { state.withLock { $0.refusedSignatures += errors } }

  /// Makes the next downgrades fail, before they are carried out.
  func refuseDowngrades(_ errors: NetworkError...) { state.withLock { $0.refusedDowngrades += errors } }

  /// Makes the next requests for a code by SMS fail.
  func failCodes(_ errors: NetworkError...) { state.withLock { $0.unsentCodes += errors } }

  /// Makes the next proofs of a security key fail.
  func refuseProofs(_ errors: NetworkError...) { state.withLock { $0.refusedProofs += errors } }

  /// Runs `body` when the next call of `operation` has been carried out, before its answer arrives.
  func during(_ operation: String, _ body: @escaping @Sendable () async -> Void) {
    state.withLock { $0.interludes[operation] = body }
  }

  /// The credential of the account's security key, in base64url.
  var credential: String {
    get { state.withLock(\.credential) }
    set { state.withLock { $0.credential = newValue } }
  }

  /// The device, as the server has it.
  var device: DeviceStatus? {
    get { state.withLock(\.device) }
    set { state.withLock { $0.device = newValue } }
  }

  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    guard let body = try? JSONEncoder().encode(request) else { throw .malformed(requestID: nil, "request") }
    let error = state.withLock { state in
      state.received.append(Received(name: operation.name, body: [UInt8](body), token: token))
      return state.errors.isEmpty ? nil : state.errors.removeFirst()
    }
    if let error, !error.mayHaveBeenCarriedOut { throw error }
    let (method, challenge, scope) = state.withLock { ($0.method, $0.challenge, $0.scope) }
    let tokens = TokenResponse(
      token: "t.t.t", message: "Authentication successful", refreshToken: "r", expiresIn: 900, scope: scope)
    let answer: any WireValue
    switch request {
    case is EmptyRequest where operation.name == "mfa.status": answer = state.withLock(\.status)
    case is EmptyRequest where operation.name == "mfa.resend-email-otp": answer = MessageResponse(message: "Code sent")
    case is EmptyRequest where operation.name == "webauthn.authentication-options":
      answer = CredentialRequestOptions(
        challenge: String(repeating: "A", count: 43), timeout: 300_000, rpId: "example.org",
        allowCredentials: [CredentialDescriptor(id: credential, transports: nil)], userVerification: "preferred")
    case let request as AuthenticationRequest:
      if let error = state.withLock({ $0.refusedProofs.isEmpty ? nil : $0.refusedProofs.removeFirst() }) { throw error }
      answer = VerifyMFAResponse(
        message: "MFA verification successful", userID: "u-1", token: "f.f.f", refreshToken: "r-2", expiresIn: 900,
        trustToken: request.trust_device == true ? "trust-1" : nil)
    case let request as VerifyMFARequest:
      let isTrusted = request.trust_device == true && state.withLock(\.trustsDevices)
      answer = VerifyMFAResponse(
        message: "MFA verification successful", userID: "u-1", token: "f.f.f", refreshToken: "r-2", expiresIn: 900,
        trustToken: isTrusted ? "trust-1" : nil)
    case let request as DeviceRequest where operation.name == "mfa.downgrade":
      if let error = state.withLock({ $0.refusedDowngrades.isEmpty ? nil : $0.refusedDowngrades.removeFirst() }) {
        throw error
      }
      device = .enrolled(request.deviceId, .smsOTP)
      answer = MethodResponse(method: "smsOTP", message: "Downgraded to SMS OTP")
    case is DeviceRequest where operation.name == "mfa.unenroll":
      device = nil
      answer = UnenrollResponse(message: "Device unenrolled")
    case is DeviceRequest:
      answer = ChallengeResponse(method: method.rawValue, challenge: challenge, challengeId: "c-1", expiresIn: 300)
    case is VerifySignatureRequest: answer = tokens
    case is VerifyOTPRequest:
      answer = TokenResponse(
        token: "o.t.p", message: "Authentication successful", refreshToken: "r", expiresIn: 900, scope: scope)
    case is RequestOTPRequest:
      if let error = state.withLock({ $0.unsentCodes.isEmpty ? nil : $0.unsentCodes.removeFirst() }) { throw error }
      answer = RequestOTPResponse(message: "OTP sent", expiresIn: 300)
    case is RevokeRequest: answer = RevokeResponse(message: "Session revoked")
    case let request as UpgradeRequest:
      device = .enrolled(request.deviceId, .secureEnclave)
      answer = MethodResponse(method: "secureEnclave", message: "Upgraded to Secure Enclave MFA")
    case let request as DeviceStatusRequest:
      let unknown = DeviceStatus(
        deviceId: request.deviceId, enrolled: false, method: nil, hasPublicKey: false, phoneNumber: nil,
        attested: false)
      answer = device ?? unknown
    case is RefreshRequest: answer = tokens
    case let request as EnrollRequest:
      device = .enrolled(request.deviceId, request.method == "smsOTP" ? .smsOTP : .secureEnclave)
      answer = EnrollResponse(
        deviceId: request.deviceId, method: request.method, message: "Device enrolled successfully")
    default: throw .malformed(requestID: nil, "no answer for \(operation.name)")
    }
    if let body = state.withLock({ $0.interludes.removeValue(forKey: operation.name) }) { await body() }
    if let error { throw error }
    if request is VerifySignatureRequest,
      let error = state.withLock({ $0.refusedSignatures.isEmpty ? nil : $0.refusedSignatures.removeFirst() })
    {
      throw error
    }
    guard let answer = answer as? Response else { throw .malformed(requestID: nil, "answer") }
    return answer
  }
}

extension DeviceStatus {
  static func enrolled(_ deviceID: String, _ method: MFAMethod) -> Self {
    Self(
      deviceId: deviceID, enrolled: true, method: method.rawValue, hasPublicKey: method == .secureEnclave,
      phoneNumber: "+•••7890", attested: true)
  }
}

extension CredentialCreationOptions {
  static let standIn = Self(
    rp: .init(id: "example.org", name: "Example"), user: .init(id: "AA", name: "ada", displayName: "ada"),
    challenge: String(repeating: "A", count: 43), pubKeyCredParams: [.init(alg: -7)], timeout: 300_000,
    excludeCredentials: [], authenticatorSelection: .init(residentKey: "discouraged", userVerification: "preferred"),
    attestation: "none")
}

extension MFAStatus {
  /// The status of an account with backup codes, in a session that needs the second factor.
  static func standIn(
    methods: [String], needsCode: Bool = true, isDeviceTrusted: Bool = false, allowsBiometry: Bool = true
  ) -> Self {
    Self(
      enabled: true, enrolledAt: "2025-11-01T10:00:00Z", backupCodesRemaining: 10,
      trustedDevicesCount: isDeviceTrusted ? 1 : 0, securityKeysCount: 0, required: false, requiredAt: nil,
      gracePeriodEnd: nil, inGracePeriod: false, challengeRequired: needsCode, deviceTrusted: isDeviceTrusted,
      methods: methods, policy: Policy(biometricGate: allowsBiometry))
  }
}
