import Locking
import MFAClient
import MFAWire

/// The second factor of one account, as a server keeps it. The code 123456 is right.
final class FactorBackend: MFABackend {
  struct Account: Sendable {
    var isEnabled = false
    var methods: [String] = []
    var backupCodes: [String] = []
    var trusted: [Int64] = []
    var keys: [String] = []
  }

  private struct State {
    var account: Account
    var received: [String] = []
    var errors: [NetworkError] = []
    /// The errors in place of answers, by the operation that is carried out.
    var lost: [String: NetworkError] = [:]
    /// The device whose trust cannot be revoked at the next attempt.
    var refusal: (id: Int64, error: NetworkError)?
  }

  private let state: LockedValue<State>

  init(_ account: Account = Account()) { state = LockedValue(State(account: account)) }

  var account: Account {
    get { state.withLock(\.account) }
    set { state.withLock { $0.account = newValue } }
  }

  /// The names of the operations that were called.
  var received: [String] { state.withLock(\.received) }

  /// Makes the next calls fail.
  func fail(_ errors: NetworkError...) { state.withLock { $0.errors += errors } }

  /// Makes the next answer of `operation`, which is carried out, get lost by `error`.
  func loseAnswer(of operation: String, _ error: NetworkError) { state.withLock { $0.lost[operation] = error } }

  /// Makes the next revocation of one device fail.
  func refuseRevocation(of id: Int64, _ error: NetworkError) { state.withLock { $0.refusal = (id, error) } }

  static func refusal(_ code: String, _ status: Int) -> NetworkError {
    .refused(BackendRefusal(status: status, ErrorBody(message: "the server's text", code: code, requestId: "r")))
  }

  private static func entry(_ id: String, _ name: String) -> SecurityKeyEntry {
    SecurityKeyEntry(
      id: id, credentialId: id, name: name, algorithm: -7, transports: [], backedUp: false,
      createdAt: "2026-01-01T00:00:00Z", lastUsedAt: nil)
  }

  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    let error = state.withLock { state in
      state.received.append(operation.name)
      return state.errors.isEmpty ? nil : state.errors.removeFirst()
    }
    if let error { throw error }
    if let id = (request as? TrustedDeviceRequest)?.id, let refusal = state.withLock({ $0.refusal }), refusal.id == id {
      state.withLock { $0.refusal = nil }
      throw refusal.error
    }
    if operation.name == MFAOperations.confirmAuthenticator.name, account.isEnabled {
      throw Self.refusal("already_enabled", 409)
    }
    if let request = request as? CodeRequest, request.code != "123456" { throw Self.refusal("invalid_code", 401) }
    guard let answer = answer(operation.name, request) as? Response else {
      throw .malformed(requestID: nil, "no answer for \(operation.name)")
    }
    if let error = state.withLock({ $0.lost.removeValue(forKey: operation.name) }) { throw error }
    return answer
  }

  private func answer(_ name: String, _ request: any WireValue) -> (any WireValue)? {
    let offered = (0..<10).map { "OFFERED\($0)" }
    return state.withLock { state -> (any WireValue)? in
      switch (name, request) {
      case ("mfa.status", _): return status(of: state.account)
      case (_, is AuthenticatorRequest):
        return AuthenticatorOffer(
          secret: "GEZDGNBV", qrCodeURL: "otpauth://totp/a?secret=GEZDGNBV", backupCodes: offered)
      case (MFAOperations.confirmAuthenticator.name, _):
        (state.account.isEnabled, state.account.methods) = (true, ["totp", "backup_code"])
        state.account.backupCodes = offered
        return MessageResponse(message: "")
      case (MFAOperations.regenerateBackupCodes.name, _):
        state.account.backupCodes = ["RENEWED1"]
        return BackupCodes(backupCodes: state.account.backupCodes)
      case (MFAOperations.disableAuthenticator.name, _):
        state.account = Account()
        return MessageResponse(message: "")
      case (MFAOperations.offerEmail.name, _): return MessageResponse(message: "")
      case (MFAOperations.confirmEmail.name, _):
        state.account.methods.append("email")
        return MessageResponse(message: "")
      case (MFAOperations.registrationOptions.name, _): return CredentialCreationOptions.standIn
      case (_, let request as RegistrationRequest):
        state.account.keys.append(request.id)
        if !state.account.methods.contains("webauthn") { state.account.methods.append("webauthn") }
        return Self.entry(request.id, request.name ?? "")
      case (MFAOperations.securityKeys.name, _):
        return SecurityKeyList(keys: state.account.keys.map { Self.entry($0, "key") })
      case (_, let request as SecurityKeyRequest):
        state.account.keys.removeAll { $0 == request.id }
        if state.account.keys.isEmpty { state.account.methods.removeAll { $0 == "webauthn" } }
        return MessageResponse(message: "")
      case (MFAOperations.trustedDevices.name, _):
        return TrustedDeviceList(
          devices: state.account.trusted.map {
            .init(
              id: $0, deviceName: "phone \($0)", fingerprint: "", createdAt: "2026-01-01T00:00:00Z",
              lastUsedAt: "2026-01-02T00:00:00Z", expiresAt: "2026-01-31T00:00:00Z", ipAddress: nil)
          })
      case (_, let request as TrustedDeviceRequest):
        state.account.trusted.removeAll { $0 == request.id }
        return MessageResponse(message: "")
      default: return nil
      }
    }
  }

  private func status(of account: Account) -> MFAStatus {
    MFAStatus(
      enabled: account.isEnabled, enrolledAt: nil, backupCodesRemaining: account.backupCodes.count,
      trustedDevicesCount: account.trusted.count, securityKeysCount: 0, required: false, requiredAt: nil,
      gracePeriodEnd: nil, inGracePeriod: false, challengeRequired: false, deviceTrusted: false,
      methods: account.methods, policy: .init(biometricGate: true))
  }
}
