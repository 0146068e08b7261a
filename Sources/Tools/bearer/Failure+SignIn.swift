internal import Commands
internal import Wire
internal import OIDCClient

/// A failure with its code, which the JSON and the text have in front.
extension Failure {
  init(_ error: TokenStoreError) {
    switch error {
    case .file: self.init(.cannotCreate, "store_unusable: \(error)", hint: error.hint)
    default: self.init(.badData, "store_unusable: \(error)", hint: error.hint)
    }
  }

  /// What `provider` answered, or why it did not.
  ///
  /// - Parameter account: The account that a person signs in with; `nil` for the one of the provider's name.
  init(_ error: OIDCError, at provider: IdentityProvider, for account: Account? = nil) {
    let words = account?.words ?? provider.id
    let message = "\(error.code): \(provider.id): \(error)"
    switch error {
    case .transport(.unreachable): self.init(.unavailable, message, hint: "check the network and the issuer")
    case .transport(.untrusted):
      let certificate = provider.trust.clientCertificate == nil ? "" : "; see cert_file if it refuses the client's"
      self.init(
        .protocolFault, message, hint: "for a provider of your own, name its authority with ca_file" + certificate)
    case .transport, .malformed, .tooLarge, .otherIssuer, .redirected, .tokenType:
      self.init(.protocolFault, message, hint: "`bearer providers check \(provider.id)` looks at the provider")
    case .status where error.isOfMissingChallengeEndpoint:
      self.init(
        .retryLater, message,
        hint: "the provider names an endpoint for challenges that does not answer as one: report this to the provider")
    case .status(let status, _, let pause):
      // A status without an OAuth error says nothing about the grant: a proxy may have answered.
      self.init(
        .retryLater, message,
        hint: pause.map { "the provider asks to wait \($0) s" }
          ?? (status == 429 || status >= 500
            ? "try again later"
            : "try again later; if it stays, `bearer providers check \(provider.id)` looks at the provider, and "
              + "`bearer login \(words)` signs in again"))
    // The provider's own failure, also where its status is 4xx (RFC 6749, section 4.1.2.1).
    case .refused(let refusal) where ["server_error", "temporarily_unavailable"].contains(refusal.error):
      self.init(
        .retryLater, message,
        hint: refusal.retryAfter.map { "the provider asks to wait \($0) s" } ?? "try again later")
    case .refused(let refusal): self.init(.refused, message, hint: Self.hint(for: refusal.error, provider, words))
    case .idToken(.audience(let audiences)) where audiences.contains(where: provider.isClient):
      self.init(.refused, message, hint: Self.hint(forAudiences: audiences, provider))
    case .idToken(.issuedAt), .idToken(.expired), .idToken(.notYetValid):
      self.init(
        .refused, message,
        hint: "compare the clocks of this machine and of the provider; clock_skew in the configuration allows up to 15m"
      )
    case .idToken:
      self.init(.refused, message, hint: "`bearer explain` shows each rule of a token")
    case .userinfo: self.init(.refused, message, hint: "these claims are not those of the person who signed in")
    case .state, .redirectIssuer:
      self.init(.refused, message, hint: "begin again: `bearer login \(words)`")
    case .notOffered: self.init(.usage, message, hint: "`bearer providers check \(provider.id)` lists what it offers")
    case .clientKey: self.init(.configuration, message, hint: "see private_key_file in the configuration")
    case .attestation:
      self.init(.configuration, message, hint: "see attestation_command and attestation_key_file in the configuration")
    case .attestedKeyChanged:
      self.init(
        .configuration, message,
        hint: "bring the key back to attestation_key_file, or sign in with the new one: `bearer login \(words)`")
    case .deviceCodeExpired: self.init(.refused, message, hint: "begin again: `bearer login --device \(words)`")
    }
  }

  /// Why `account` has no token.
  ///
  /// - Parameter issuer: The provider that issued its tokens; `nil` for the account's own.
  init(_ error: SessionError, at account: Account, issuer: IdentityProvider? = nil) {
    let message = "\(error.code): \(account.name): \(error)"
    let again = "sign in: `bearer login \(account.words)`"
    switch error {
    case .notSignedIn, .signInNeeded, .otherClient: self.init(.refused, message, hint: again)
    case .uncertain:
      self.init(.retryLater, message, hint: "the next call tries once; nothing was deleted")
    case .postponed, .busy: self.init(.retryLater, message, hint: "try again later")
    case .provider(let error): self.init(error, at: issuer ?? account.provider, for: account)
    case .store(let error): self.init(error)
    }
  }

  /// The token of an account is bound to a key.
  static func bound(_ account: Account) -> Failure {
    Failure(
      .usage, "token_bound: \(account.name): the token is bound to a key, so that it is of no use alone",
      hint: "bearer token \(account.words) --header METHOD URL | curl -H @- URL; or ask for tokens that are not bound: "
        + "dpop: off in the configuration, then `bearer login \(account.words)`")
  }

  /// The token of an exchange at `issuer` is bound to the key of an account.
  static func boundExchange(_ account: Account, at issuer: IdentityProvider) -> Failure {
    var hint = "--json prints it; dpop: off in the configuration asks for tokens that are not bound"
    if case .attestation = issuer.authentication {
      hint = "--json prints it; its proofs are by the key of attestation_key_file"
    }
    return Failure(
      .usage, "token_bound: \(account.name): the new token is bound to a key, so that it is of no use alone",
      hint: hint)
  }

  /// Names the setting for the audiences that are neither the client nor trusted.
  private static func hint(forAudiences audiences: [String], _ provider: IdentityProvider) -> String {
    let trusted = provider.variations.trustedAudiences
    let others = audiences.filter { audience in
      !provider.isClient(audience) && !trusted.contains { $0.utf8.elementsEqual(audience.utf8) }
    }
    // As YAML that can be copied, and no longer than a few lines.
    let listed = (trusted + others).prefix(8).map { "\"\(String($0.unicodeScalars.prefix(100)))\"" }
    return "if these are parts of your own installation, trust them in the configuration: trusted_audiences: "
      + "[\(listed.joined(separator: ", "))]"
  }

  private static func hint(for code: String, _ provider: IdentityProvider, _ words: String) -> String {
    switch code.replacing(" ", with: "_") {
    case "mfa_required":
      "this provider asks for a second factor: sign in with the browser, `bearer login \(words)`"
    case "invalid_client_attestation", "use_fresh_attestation":
      "the provider must know the attester's keys and client id; compare the clocks of attester and provider"
    case "use_attestation_challenge":
      "the provider must give a challenge in its answer, and accept a proof with it: report this to the provider"
    case "use_dpop_nonce":
      "the provider must give a nonce in its answer, and accept a proof with it: report this to the provider"
    case "invalid_dpop_proof": "compare the clocks of this machine and of the provider"
    case "invalid_client", "unauthorized_client": "see client_id, authentication and the secret in the configuration"
    case "invalid_scope": "see scopes in the configuration"
    case "invalid_target": "the provider gives no token for this audience or resource"
    case "unsupported_grant_type", "unsupported_token_type":
      "the provider does not allow this grant to the client, or does not know it"
    case "access_denied": "the sign-in was declined"
    default:
      provider.isOfMachine
        ? "`bearer providers check \(provider.id)` looks at the provider" : "begin again: `bearer login \(words)`"
    }
  }
}

extension IdentityProvider {
  /// Whether `audience` is this client. As bytes: a provider may have written anything.
  fileprivate func isClient(_ audience: String) -> Bool { audience.utf8.elementsEqual(clientID.utf8) }
}
