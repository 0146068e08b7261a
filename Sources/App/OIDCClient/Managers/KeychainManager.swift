public import Foundation

/// Keeps tokens by user, in any store.
///
/// Calls block, and wait for the person where a biometric check is set.
public struct KeychainManager: KeychainManagerProtocol, Sendable {
  private let provider: IdentityProvider
  private let tokenStore: any TokenStore
  private let biometry: (any BiometricCheck)?
  private let now: @Sendable () -> Date

  /// Uses `store` for tokens of `provider`. With `biometry`, tokens are returned only after the device has recognised
  /// its owner.
  public init(
    provider: IdentityProvider, store: any TokenStore, biometry: (any BiometricCheck)? = nil,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.provider = provider
    tokenStore = store
    self.biometry = biometry
    self.now = now
  }

  /// Replaces the tokens of a user. Their lifetime counts from now.
  ///
  /// - Throws: `AuthenticationError.keychainError`.
  public func store(tokens: AuthTokens, for userID: String) throws {
    let account = StoredAccount(
      providerID: provider.id, issuer: provider.issuer, clientID: provider.clientID, tokens: tokens, user: nil,
      issuedAt: now())
    try Self.translated { () throws(TokenStoreError) in try tokenStore.write(account, as: userID) }
  }

  /// The tokens of a user; `nil` if there are none, which needs no biometric check.
  ///
  /// - Throws: `AuthenticationError.keychainError`, `.biometricAuthenticationFailed`.
  public func retrieveTokens(for userID: String) throws -> AuthTokens? {
    try Self.translated { () throws(TokenStoreError) in
      guard let account = try tokenStore.account(userID) else { return nil }
      try biometry?.check(reason: "read your sign-in")
      return account.tokens
    }
  }

  /// Deletes the tokens of a user.
  public func deleteTokens(for userID: String) throws {
    try Self.translated { () throws(TokenStoreError) in try tokenStore.delete(userID) }
  }

  /// Deletes the tokens of all users.
  public func clearAllTokens() throws {
    try Self.translated { () throws(TokenStoreError) in try tokenStore.clear() }
  }

  private static func translated<Value>(_ body: () throws(TokenStoreError) -> Value) throws -> Value {
    do throws(TokenStoreError) { return try body() } catch { throw AuthenticationError(error) }
  }
}

extension AuthenticationError {
  /// The error as an app shows it, of a store. A store that is no keychain has Apple's status for data that cannot be
  /// decoded.
  public init(_ error: TokenStoreError) {
    switch error {
    case .keychain(let status): self = .keychainError(status)
    case .notRecognised: self = .biometricAuthenticationFailed
    case .file, .damaged, .unknownVersion, .keyMissing, .otherKey, .keyExposed: self = .keychainError(-26_275)
    }
  }

  /// The error as an app shows it, of a session.
  public init(_ error: SessionError) {
    switch error {
    case .notSignedIn, .signInNeeded(.noRefreshToken), .otherClient: self = .tokenExpired
    case .signInNeeded: self = .invalidCredentials
    case .uncertain(let error), .provider(let error): self = Self(error)
    case .postponed: self = .serverError(statusCode: 503)
    case .store(let error): self = Self(error)
    case .busy: self = .networkError(underlying: error)
    }
  }
}
