public import Foundation

/// The tokens of a sign-in.
///
/// `expiresIn` is relative to an instant that is not in it. `StoredAccount` keeps the absolute one.
public struct AuthTokens: Sendable, Hashable {
  /// What a service accepts.
  public let accessToken: String
  /// What buys new tokens; `nil` if the provider issues none.
  public let refreshToken: String?
  /// How the access token is presented: `Bearer` or `DPoP`.
  public let tokenType: String
  /// The lifetime of the access token, in seconds from its issue.
  public let expiresIn: TimeInterval
  /// The scopes that were granted, separated by spaces; `nil` if they are those that were asked for.
  public let scope: String?
  /// Who signed in (OpenID Connect).
  public let idToken: String?

  /// Creates a value.
  public init(
    accessToken: String, refreshToken: String?, tokenType: String, expiresIn: TimeInterval, scope: String?,
    idToken: String?
  ) {
    self.accessToken = accessToken
    self.refreshToken = refreshToken
    self.tokenType = tokenType
    self.expiresIn = expiresIn
    self.scope = scope
    self.idToken = idToken
  }
}

/// What a person types into a login form. It has no encoding, so that it gets into no file.
public struct Credentials: Sendable, Hashable {
  /// The name at the provider.
  public let username: String
  /// The password.
  public let password: String

  /// Creates credentials.
  public init(username: String, password: String) {
    self.username = username
    self.password = password
  }
}

/// The person who signed in, as the provider describes them.
public struct User: Sendable, Hashable, Codable {
  /// The subject: stable, and unique at the provider.
  public let id: String
  /// `preferred_username`; the subject where the provider gives none.
  public let username: String
  /// The e-mail address, verified or not.
  public let email: String?
  /// The name for people.
  public let displayName: String?

  /// Creates a user.
  public init(id: String, username: String, email: String?, displayName: String?) {
    self.id = id
    self.username = username
    self.email = email
    self.displayName = displayName
  }

  /// The user of a verified ID token; `nil` without a subject.
  init?(_ claims: IDToken.Claims) {
    guard let subject = claims.subject else { return nil }
    self.init(
      id: subject, username: claims.preferredUsername ?? subject, email: claims.email, displayName: claims.name)
  }
}

/// What a sign-in led to.
public struct AuthenticationResult: Sendable, Hashable {
  /// The provider that answered: another one than was asked for after a failover.
  public let providerID: String
  /// The person; `nil` with plain OAuth 2.0.
  public let user: User?
  /// The tokens, which are stored already.
  public let tokens: AuthTokens
}

// Secrets stay out of logs, error messages and debuggers' summaries.
extension AuthTokens: CustomStringConvertible, CustomReflectable {
  /// The kind and the lifetime.
  public var description: String {
    // An app may have created the value with any number.
    let lifetime = Int(exactly: expiresIn.rounded(.towardZero)).map { "\($0)" } ?? "\(expiresIn)"
    return "\(tokenType) token for \(lifetime) s"
  }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Credentials: CustomStringConvertible, CustomReflectable {
  /// A constant.
  public var description: String { "credentials" }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension AuthenticationResult: CustomReflectable {
  /// The provider and the user.
  public var customMirror: Mirror { Mirror(self, children: ["providerID": providerID]) }
}
