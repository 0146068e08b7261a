internal import MFAClient

/// Why the server did not do what the screen asked for.
enum ChallengeFailure: Sendable, Hashable {
  case invalidCode
  case expiredCode
  /// The time to wait, if the server says so.
  case rateLimited(Duration?)
  /// The time to wait; `nil` if waiting does not help.
  case locked(Duration?)
  case sessionEnded(String)
  /// There was no complete answer.
  case network
  /// Another refusal of the server, with its text.
  case refused(String)

  /// The user has signed out, or signed in again, since the challenge began.
  static let signedOut = Self.sessionEnded("The session has ended. Sign in again.")

  init(_ error: NetworkError) {
    guard case .refused(let refusal) = error else {
      // The gate limits requests, too.
      self = error.status == 429 ? .rateLimited(error.retryAfter) : .network
      return
    }
    switch refusal.code {
    case "invalid_code": self = .invalidCode
    case "expired_code": self = .expiredCode
    case "rate_limited": self = .rateLimited(refusal.retryAfter)
    case "account_locked": self = .locked(refusal.retryAfter)
    case "session_required": self = .sessionEnded(refusal.message)
    default: self = .refused(refusal.message)
    }
  }

  /// The text for the user.
  var text: String {
    switch self {
    case .invalidCode: "Invalid code. Please try again."
    case .expiredCode: "Code has expired. Please generate a new one."
    case .rateLimited: "Too many attempts. Please wait before trying again."
    case .locked(.some): "Too many failed attempts. Your account has been temporarily locked."
    // Without a time that the server states, waiting does not help.
    case .locked(nil): "Your account has been locked. Please contact support."
    case .network: "The request could not be completed. Check your connection and try again."
    case .sessionEnded(let text), .refused(let text): text
    }
  }
}
