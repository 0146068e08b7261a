public import Foundation
internal import Wire

#if canImport(Darwin)
  public import Darwin
#else
  /// A status of Apple's keychain, under its name there.
  public typealias OSStatus = Int32
#endif

/// The reason why a person is not signed in, in the categories that an app shows.
public enum AuthenticationError: Error, Sendable {
  /// The provider refuses the user name and password, or the grant: sign in again.
  case invalidCredentials
  /// There is no connection, or no answer.
  case networkError(underlying: any Error)
  /// The provider answers with an error of its own.
  case serverError(statusCode: Int)
  /// The provider's settings, or what it says of itself, cannot be used: why.
  case configurationError(String)
  /// The store refuses.
  case keychainError(OSStatus)
  /// The access token has expired, and there is nothing to renew it with.
  case tokenExpired
  /// The person was not recognised by the device.
  case biometricAuthenticationFailed
}

extension AuthenticationError {
  /// The categories of the design, with what an app does.
  public enum Category: Sendable, Hashable, CaseIterable {
    /// Offer to try again.
    case network
    /// Delete the stored credentials and show the login.
    case authentication
    /// Show the fault to the person who configures the app.
    case configuration
    /// The device protects the tokens: ask again.
    case security
    /// Mark the field.
    case validation
  }

  /// The category.
  public var category: Category {
    switch self {
    case .invalidCredentials, .tokenExpired: .authentication
    case .networkError, .serverError: .network
    case .configurationError: .configuration
    case .keychainError, .biometricAuthenticationFailed: .security
    }
  }

  /// The codes after which a new sign-in of the person helps: those of a refused grant, of a person who declined
  /// (`authorization_declined` is Entra's for a device grant), and of a session at the provider that asks for the person
  /// (OpenID Connect Core 1.0, section 3.1.2.6).
  private static let refusalsOfPerson: Set<String> = [
    "invalid_grant", "access_denied", "authorization_declined", "interaction_required", "login_required",
    "account_selection_required", "consent_required",
  ]

  /// The error as an app shows it, of what an exchange with a provider reported.
  public init(_ error: OIDCError) {
    switch error {
    case .transport: self = .networkError(underlying: error)
    case .status(let status, _, _): self = .serverError(statusCode: status)
    case .refused(let refusal) where Self.refusalsOfPerson.contains(refusal.error): self = .invalidCredentials
    // A redirect has no status of its own: these stand for it (RFC 6749, section 4.1.2.1).
    case .refused(let refusal) where refusal.error == "server_error": self = .serverError(statusCode: 500)
    case .refused(let refusal) where refusal.error == "temporarily_unavailable": self = .serverError(statusCode: 503)
    case .idToken, .userinfo, .deviceCodeExpired, .state, .redirectIssuer, .attestedKeyChanged:
      self = .invalidCredentials
    case .refused, .malformed, .tooLarge, .otherIssuer, .redirected, .notOffered, .tokenType, .clientKey, .attestation:
      self = .configurationError("\(error)")
    }
  }
}

extension AuthenticationError: LocalizedError {
  /// What happened, and what the person can do.
  public var errorDescription: String? {
    switch self {
    case .invalidCredentials: Self.text("The sign-in was refused. Sign in again.")
    case .networkError(OIDCError.transport(.untrusted)):
      Self.text("The connection to the provider is not secure. Use another network, or ask its operator.")
    case .networkError: Self.text("The provider cannot be reached. Check the connection and try again.")
    case .serverError(let status):
      Self.text("The provider has a problem (status %@). Try again later.", "\(status)")
    case .configurationError(let reason): Self.text("This provider is not set up correctly: %@.", reason)
    case .keychainError(let status):
      Self.text("The stored sign-in cannot be used (status %@). Unlock the device and try again.", "\(status)")
    case .tokenExpired: Self.text("The sign-in has expired. Sign in again.")
    case .biometricAuthenticationFailed: Self.text("You were not recognised. Try again, or use the passcode.")
    }
  }

  /// The translation of `english` in the app's string catalog, otherwise `english`, with `value` in the place of `%@`.
  private static func text(_ english: String, _ value: String = "") -> String {
    NSLocalizedString(english, comment: "OIDCClient").replacing("%@", with: value)
  }
}

/// Whether a person is signed in.
public enum AuthenticationState: Sendable {
  /// No tokens, or only expired ones.
  case unauthenticated
  /// A sign-in is under way.
  case authenticating
  /// Signed in.
  case authenticated(user: User)
  /// The last sign-in failed.
  case error(AuthenticationError)
}
