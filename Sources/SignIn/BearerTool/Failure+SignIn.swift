internal import CommandSupport
internal import HTTPExchange
internal import OIDCClient

/// A failure with its code, which the JSON and the text have in front.
extension Failure {
  init(_ error: TokenStoreError) {
    switch error {
    case .file: self.init(.cannotCreate, "store_unusable: \(error)", hint: error.hint)
    default: self.init(.badData, "store_unusable: \(error)", hint: error.hint)
    }
  }

  init(_ error: OIDCError, at provider: IdentityProvider) {
    let message = "\(error.code): \(provider.id): \(error)"
    switch error {
    case .transport(.unreachable): self.init(.unavailable, message, hint: "check the network and the issuer")
    case .transport(.untrusted):
      self.init(.protocolFault, message, hint: "for a provider of your own, name its authority with ca_file")
    case .transport, .malformed, .tooLarge, .otherIssuer, .redirected, .tokenType:
      self.init(.protocolFault, message, hint: "`bearer providers check \(provider.id)` looks at the provider")
    case .status(let status, _, let pause):
      self.init(
        status == 429 || status >= 500 ? .retryLater : .protocolFault, message,
        hint: pause.map { "the provider asks to wait \($0) s" } ?? "try again later")
    case .refused(let refusal): self.init(.refused, message, hint: Self.hint(for: refusal.error, provider))
    case .idToken:
      self.init(.refused, message, hint: "`bearer explain` shows each rule of a token")
    case .state, .redirectIssuer:
      self.init(.refused, message, hint: "begin again: `bearer login \(provider.id)`")
    case .notOffered: self.init(.usage, message, hint: "`bearer providers check \(provider.id)` lists what it offers")
    case .clientKey: self.init(.configuration, message, hint: "see private_key_file in the configuration")
    case .deviceCodeExpired: self.init(.refused, message, hint: "begin again: `bearer login --device \(provider.id)`")
    }
  }

  init(_ error: SessionError, at provider: IdentityProvider) {
    let message = "\(error.code): \(provider.id): \(error)"
    let again = "sign in: `bearer login \(provider.id)`"
    switch error {
    case .notSignedIn, .signInNeeded, .otherClient: self.init(.refused, message, hint: again)
    case .uncertain:
      self.init(.retryLater, message, hint: "the next call tries once; nothing was deleted")
    case .postponed, .busy: self.init(.retryLater, message, hint: "try again later")
    case .provider(let error): self.init(error, at: provider)
    case .store(let error): self.init(error)
    }
  }

  private static func hint(for code: String, _ provider: IdentityProvider) -> String {
    switch code {
    case "mfa_required":
      "this provider asks for a second factor: sign in with the browser, `bearer login \(provider.id)`"
    case "invalid_client", "unauthorized_client": "see client_id, authentication and the secret in the configuration"
    case "invalid_scope": "see scopes in the configuration"
    case "access_denied": "the sign-in was declined"
    default: "begin again: `bearer login \(provider.id)`"
    }
  }
}
