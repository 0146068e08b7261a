/// Why there is no access token.
public enum SessionError: Error, Sendable, Hashable {
  /// There are no tokens of this account.
  case notSignedIn
  /// Only a new sign-in helps.
  case signInNeeded(RefreshDecision.Reason)
  /// The answer to a refresh was lost. The next call tries once.
  case uncertain(OIDCError)
  /// The provider asks to wait so many seconds.
  case postponed(Int)
  /// The provider cannot be used.
  case provider(OIDCError)
  /// The store cannot be used.
  case store(TokenStoreError)
  /// Another process has held the lock of the account for too long.
  case busy
  /// The tokens were issued by another provider, or to another client, than the present entry names.
  case otherClient
}

extension SessionError {
  /// The code, for scripts.
  public var code: String {
    switch self {
    case .notSignedIn: "not_signed_in"
    case .signInNeeded(.noRefreshToken): "token_expired"
    case .signInNeeded(.refused): "sign_in_needed"
    case .signInNeeded(.refusedAfterLostAnswer): "answer_was_lost"
    case .uncertain: "refresh_uncertain"
    case .postponed: "provider_busy"
    case .provider(let error): error.code
    case .store: "store_unusable"
    case .busy: "account_locked"
    case .otherClient: "other_client"
    }
  }
}

extension SessionError: CustomStringConvertible {
  /// One sentence without a full stop.
  public var description: String {
    switch self {
    case .notSignedIn: "this account is not signed in"
    case .signInNeeded(.noRefreshToken): "the sign-in has expired, and there is no refresh token"
    case .signInNeeded(.refused(let code)): "the provider refuses the refresh token (\(code))"
    case .signInNeeded(.refusedAfterLostAnswer(let code)):
      "the answer to an earlier refresh was lost, and the provider now refuses the old refresh token (\(code))"
    case .uncertain(let error): "the refresh is uncertain: \(error)"
    case .postponed(let seconds): "the provider asks to wait \(seconds) s"
    case .provider(let error): "\(error)"
    case .store(let error): "\(error)"
    case .busy: "another process is renewing this account's tokens and does not finish"
    case .otherClient: "the tokens were issued by another provider or to another client than the configuration names"
    }
  }
}
