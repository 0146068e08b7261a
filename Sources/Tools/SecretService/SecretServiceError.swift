/// Why the desktop's keyring does not do what was asked.
public enum SecretServiceError: Error, Sendable, Hashable {
  /// There is no session bus, no service on it, or no collection for secrets: why. Expected on servers and in
  /// containers.
  case unavailable(String)
  /// The collection is locked, and the call may not ask the user to unlock it.
  case locked
  /// The user dismissed the prompt.
  case dismissed
  /// The service did not answer within the time limit.
  case timedOut
  /// An argument cannot be sent: why.
  case invalid(String)
  /// The service refuses: its text.
  case failed(String)
}

extension SecretServiceError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unavailable(let reason): "no keyring: \(reason)"
    case .locked: "the keyring is locked"
    case .dismissed: "the keyring stays locked: the prompt was dismissed"
    case .timedOut: "the keyring does not answer"
    case .invalid(let reason): "not for the keyring: \(reason)"
    case .failed(let reason): "the keyring refuses: \(reason)"
    }
  }
}
