/// Why a change of the enrolment failed.
public enum EnrolmentError: Error, Sendable, Hashable {
  /// The user declined a prompt, or the key cannot be used.
  case security(DeviceSecurityError)
  /// The server refused, or its answer was lost.
  case network(NetworkError)
  /// The record cannot be read or written.
  case storage(StorageError)
}

extension EnrolmentError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .security(let error): "\(error)"
    case .network(let error): "\(error)"
    case .storage(let error): "\(error)"
    }
  }
}

extension NetworkError {
  /// Whether the user must sign in, or sign in again, before the server does this.
  public var needsSignIn: Bool {
    ["session_required", "insufficient_user_authentication", "mfa_required"].contains(refusalCode)
  }
}
