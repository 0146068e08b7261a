public import Foundation

/// A field of a login form that cannot be sent.
public enum SignInFieldError: Error, Sendable, Hashable, CaseIterable {
  /// No user name.
  case emptyUsername
  /// No password.
  case emptyPassword
  /// A line break or another control character in the user name.
  case malformedUsername

  /// The category, as that of `AuthenticationError`.
  public var category: AuthenticationError.Category { .validation }

  /// - Throws: The first fault.
  static func check(_ credentials: Credentials) throws(SignInFieldError) {
    let name = credentials.username
    if name.allSatisfy(\.isWhitespace) { throw .emptyUsername }
    if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) { throw .malformedUsername }
    if credentials.password.isEmpty { throw .emptyPassword }
  }
}

extension SignInFieldError: LocalizedError {
  /// What to change.
  public var errorDescription: String? {
    switch self {
    case .emptyUsername: NSLocalizedString("Enter your user name.", comment: "OIDCClient")
    case .emptyPassword: NSLocalizedString("Enter your password.", comment: "OIDCClient")
    case .malformedUsername: NSLocalizedString("The user name must be on one line.", comment: "OIDCClient")
    }
  }
}
