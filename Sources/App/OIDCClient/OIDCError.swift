public import Wire

/// Why an exchange with a provider failed. Each case has its code, for scripts.
public enum OIDCError: Error, Sendable, Hashable {
  /// There is no answer.
  case transport(TransportError)
  /// A document is not what it should be: which, and why.
  case malformed(String)
  /// A document is larger than 256 KiB: which.
  case tooLarge(String)
  /// The discovery document is that of another issuer.
  case otherIssuer(expected: String, found: String)
  /// The answer is a redirect. What was sent is for the server that was named, so that none is followed.
  case redirected(String)
  /// The answer has a status that says nothing more: of which document, and when to try again, in seconds.
  case status(Int, of: String, retryAfter: Int?)
  /// The provider refuses the request (RFC 6749, section 5.2).
  case refused(ProviderRefusal)
  /// The ID token does not hold.
  case idToken(IDTokenRejection)
  /// The claims of the userinfo endpoint do not hold.
  case userinfo(IDTokenRejection)
  /// The redirect has another `state` than the request.
  case state
  /// The redirect comes from another issuer than the request went to (RFC 9207).
  case redirectIssuer(String?)
  /// The provider does not offer what is asked for.
  case notOffered(String)
  /// The tokens are of another type than was asked for: a DPoP token where none was asked for, or the reverse.
  case tokenType(String)
  /// The key of this client cannot be used.
  case clientKey(String)
  /// There is no attestation of this client that can be used: why.
  case attestation(String)
  /// The tokens are bound to another key than that of the present attestation.
  case attestedKeyChanged
  /// The user code of a device grant has expired.
  case deviceCodeExpired
}

/// An error that the provider names in its answer.
public struct ProviderRefusal: Sendable, Hashable {
  /// The error code, such as `invalid_grant`.
  public let error: String
  /// A text of the provider for developers.
  public let explanation: String?
  /// When to try again, in seconds.
  public let retryAfter: Int?

  /// Creates a refusal.
  public init(error: String, explanation: String? = nil, retryAfter: Int? = nil) {
    self.error = error
    self.explanation = explanation
    self.retryAfter = retryAfter
  }

  /// The refusal that a provider sent, with at most 300 characters of its text; `nil` if the code is none. The code
  /// becomes an exit text and a log line. It may contain spaces (RFC 6749, appendix A.7), and is not of spaces alone.
  init?(received error: String, explanation: String?, retryAfter: Int? = nil) {
    let bytes = error.utf8
    guard (1...64).contains(bytes.count), bytes.contains(where: { $0 != 0x20 }),
      bytes.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
    else { return nil }
    self.init(
      error: error, explanation: explanation.map { String($0.unicodeScalars.prefix(300)) }, retryAfter: retryAfter)
  }

  /// The refusal without its text if that repeats one of `secrets`, as some providers do with a refresh token.
  func withholding(_ secrets: [String]) -> ProviderRefusal {
    let repeats = secrets.contains { !$0.isEmpty && explanation?.contains($0.prefix(16)) == true }
    return repeats ? ProviderRefusal(error: error, retryAfter: retryAfter) : self
  }
}

extension OIDCError {
  /// The code, for scripts.
  public var code: String {
    switch self {
    case .transport(.unreachable): "provider_unreachable"
    case .transport(.untrusted): "provider_untrusted"
    case .transport(.lost): "answer_lost"
    case .transport(.malformed), .malformed: "answer_malformed"
    case .transport(.tooLarge), .tooLarge: "document_too_large"
    case .otherIssuer: "discovery_of_another_issuer"
    case .redirected: "redirect_refused"
    case .status: "server_error"
    case .refused(let refusal): refusal.error
    case .idToken(let rejection), .userinfo(let rejection): rejection.code
    case .state: "wrong_state"
    case .redirectIssuer: "wrong_redirect_issuer"
    case .notOffered: "not_offered"
    case .tokenType: "wrong_token_type"
    case .clientKey: "client_key_unusable"
    case .attestation, .attestedKeyChanged: "client_attestation_unusable"
    case .deviceCodeExpired: "expired_token"
    }
  }
}

extension OIDCError {
  /// Whether the endpoint for challenges that the provider names refuses every request, so that a pause does not help.
  public var isOfMissingChallengeEndpoint: Bool {
    guard case .status(let status, ProviderDemands.challengeEndpoint, _) = self else { return false }
    return (400..<500).contains(status) && status != 429
  }
}

extension OIDCError: CustomStringConvertible {
  /// One sentence without a full stop. It contains no token, code or password.
  public var description: String {
    switch self {
    case .transport(let error): error.description(of: "the provider")
    case .malformed(let what): "the provider's answer is malformed: \(what)"
    case .tooLarge(let what): "\(what) is larger than 256 KiB"
    case .otherIssuer(let expected, let found): "the discovery document is of \(found), not of \(expected)"
    case .redirected(let what): "\(what) is redirected, which is not followed"
    case .status(let status, let what, _): "the provider answers \(what) with status \(status)"
    case .refused(let refusal):
      "the provider refuses: \(refusal.error)\(refusal.explanation.map { " (\($0))" } ?? "")"
    case .idToken(let rejection): "the ID token is refused: \(rejection)"
    case .userinfo(let rejection): "the claims of the userinfo endpoint are refused: \(rejection)"
    case .state: "the answer belongs to another sign-in: its state is not that of the request"
    case .redirectIssuer(let issuer): "the answer comes from \(issuer ?? "an unnamed provider"), not from this provider"
    case .notOffered(let what): "the provider does not offer \(what)"
    case .tokenType(let type): "the provider issued a token of the type \(type), which was not asked for"
    case .clientKey(let reason): "the client's private key cannot be used: \(reason)"
    case .attestation(let reason): "the client attestation cannot be used: \(reason)"
    case .attestedKeyChanged:
      "the client attestation cannot be used: the tokens are bound to another key, so that a new sign-in is needed"
    case .deviceCodeExpired: "the code was not confirmed in time"
    }
  }
}
