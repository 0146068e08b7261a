internal import Foundation

// A refresh in two steps: what can fail without the refresh token is over before that is sent.
extension ProviderClient {
  /// What a refresh needs before the refresh token is sent.
  struct PreparedRefresh: Sendable {
    fileprivate let provider: IdentityProvider
    fileprivate let request: TokenEndpoint.Preparation
  }

  /// Fetches what a refresh of `account` needs, before the refresh token is sent: a token that was exchanged is lost if its
  /// answer cannot be verified.
  func prepareRefresh(of account: StoredAccount) async throws(OIDCError) -> PreparedRefresh {
    // A bearer token from before the entry demanded DPoP: its successor would be refused.
    guard provider.dpop != .required || account.dpopKey != nil else { throw .tokenType(account.tokens.tokenType) }
    let provider = try await resolved()
    if account.tokens.idToken != nil, let directory { _ = try await directory.currentKeys() }
    return PreparedRefresh(
      provider: provider, request: try await tokenEndpoint(of: provider).prepare(boundTo: account.dpopKey))
  }

  /// Exchanges the refresh token of `account` with what `prepareRefresh` returned. The request is sent once.
  func refresh(_ account: StoredAccount, _ prepared: PreparedRefresh) async throws(FailedRefresh) -> StoredAccount {
    let provider = prepared.provider
    let sentAt = dependencies.now()
    let answer: TokenResponse
    do throws(OIDCError) {
      guard let token = account.tokens.refreshToken else { throw .notOffered("a refresh") }
      answer = try await tokenEndpoint(of: provider).redeem(
        .refreshToken(token), boundTo: account.dpopKey, prepared: prepared.request)
    } catch {
      throw FailedRefresh(stage: .exchanging, error: error)
    }
    do throws(OIDCError) {
      var renewed = try await verified(
        answer, from: provider, nonce: nil, replacing: account, key: account.dpopKey, sentAt: sentAt,
        needsIDToken: false)
      // What the provider does not send again stays (RFC 6749, section 6; Core, section 12.2).
      renewed.keep(from: account)
      return renewed
    } catch {
      var failed = FailedRefresh(stage: .verifying, error: error)
      if answer.isFor(account.user), error.leavesRefreshToken {
        failed.refreshToken = answer.tokens.refreshToken ?? account.tokens.refreshToken
      }
      throw failed
    }
  }
}

extension TokenResponse {
  /// Whether the ID token, which is not verified, names `user`.
  fileprivate func isFor(_ user: User?) -> Bool {
    guard let user, let token = tokens.idToken.flatMap({ try? IDToken($0) }) else { return false }
    return user.id.isIdentical(to: token.claims.subject)
  }
}

extension OIDCError {
  /// Whether the refresh token of an answer is kept although the answer was refused for this: its ID token could not be
  /// judged, or its times or audiences are not accepted. After anything else it may be that of another session.
  fileprivate var leavesRefreshToken: Bool {
    switch self {
    case .idToken(.audience), .idToken(.authorizedParty), .idToken(.unknownKey), .idToken(.expired),
      .idToken(.issuedAt), .transport, .status, .redirected, .tooLarge:
      true
    default: false
    }
  }
}
