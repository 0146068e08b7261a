import ByteCoding
import attest
import Locking
import MFAClient
import MFAWire

/// A server that approves everything, as one would that verifies nothing. It also is the phone's inbox.
final class ApprovingBackend: MFABackend, MessageSource {
  private struct State {
    var method = MFAMethod.secureEnclave
    var codes: [String] = []
    var isHeld = false
  }

  private let state = LockedValue(State())

  /// Keeps all answers back, or gives them.
  func hold(_ isHeld: Bool) { state.withLock { $0.isHeld = isHeld } }

  func codes(to number: String) -> [String] { state.withLock(\.codes) }

  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    while state.withLock(\.isHeld), !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
    guard let answer = answer(to: request, operation.name) as? Response else {
      throw .malformed(requestID: nil, "no answer for \(operation.name)")
    }
    return answer
  }

  private func answer(to request: any WireValue, _ name: String) -> (any WireValue)? {
    let tokens = TokenResponse(token: "t.t.t", message: "", refreshToken: "r", expiresIn: 900, scope: "full")
    let method = state.withLock(\.method)
    switch request {
    case let request as EnrollRequest:
      state.withLock { $0.method = MFAMethod(rawValue: request.method) ?? .smsOTP }
      return EnrollResponse(deviceId: request.deviceId, method: request.method, message: "Device enrolled successfully")
    case is UpgradeRequest:
      state.withLock { $0.method = .secureEnclave }
      return MethodResponse(method: "secureEnclave", message: "")
    case is DeviceRequest where name == "mfa.downgrade":
      state.withLock { $0.method = .smsOTP }
      return MethodResponse(method: "smsOTP", message: "")
    case is DeviceRequest:
      state.withLock { if $0.method == .smsOTP, $0.codes.isEmpty { $0.codes.append("123456") } }
      return ChallengeResponse(
        method: method.rawValue, challenge: Base64.encode([UInt8](repeating: 1, count: 32)), challengeId: "c",
        expiresIn: 300)
    case is VerifySignatureRequest, is VerifyOTPRequest: return tokens
    case is RequestOTPRequest: return RequestOTPResponse(message: "", expiresIn: 300)
    case let request as DeviceStatusRequest:
      return DeviceStatus(
        deviceId: request.deviceId, enrolled: true, method: method.rawValue, hasPublicKey: method == .secureEnclave,
        phoneNumber: nil, attested: true)
    case is DevicesRequest:
      return DeviceList(devices: [
        DeviceList.Entry(
          deviceId: "phone-1", deviceModel: "iPhone", method: method.rawValue, enrolledAt: "2026-01-01T00:00:00Z",
          lastUsed: "2026-01-01T00:00:00Z", attested: true)
      ])
    default: return nil
    }
  }
}
