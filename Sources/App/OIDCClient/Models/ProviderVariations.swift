public import Foundation
public import Wire

/// What a sign-in at one provider needs, and at others does not.
public struct ProviderVariations: Sendable, Hashable {
  /// The difference between the clocks of provider and client that is allowed, in seconds, unless the entry names another.
  public static let usualClockSkew = IDTokenExpectation.usualLeeway
  /// The largest difference that can be allowed, in seconds.
  public static let largestClockSkew: TimeInterval = 900
  /// The most parameters.
  public static let mostParameters = 32
  /// The longest name of a parameter, in bytes.
  public static let longestName = 64
  /// The longest value of a parameter, in bytes.
  public static let longestValue = 1024

  /// Audiences of an ID token that are trusted in addition to the client, such as a project or a sibling client. A token
  /// that is for none but these is refused.
  public var trustedAudiences: [String]
  /// The difference between the clocks of provider and client that is allowed, in seconds.
  public var clockSkew: TimeInterval
  /// Further parameters of the requests that begin a sign-in: `audience`, `resource`, `prompt` and others.
  public var parameters: [String: String]
  /// The audience of client assertions; `nil` for the issuer, and for the token endpoint where there is none.
  public var assertionAudience: AssertionAudience?

  /// Further parameters of every request for tokens. They replace `parameters` of the same names there.
  public var tokenParameters: [String: String] = [:]
  /// Where the discovery document is; `nil` for the usual place below the issuer, which it must name in any case.
  public var discoveryURL: URL?
  /// The algorithm of client assertions; `nil` for ES256 or RS256, after the key.
  public var assertionAlgorithm: SignatureAlgorithm?
  /// When the request of a sign-in in the browser is sent to the provider first (RFC 9126).
  public var pushing = RequestPushing.automatic
  /// Whose tokens the client asks for.
  public var grant: AccountGrant

  /// What a client assertion is for (RFC 7523, section 3).
  public enum AssertionAudience: String, Sendable, Hashable, CaseIterable {
    /// The issuer.
    case issuer
    /// The URL of the token endpoint.
    case tokenEndpoint = "token_endpoint"
  }

  /// When the request of a sign-in is pushed: then the browser carries a reference in place of the request.
  public enum RequestPushing: String, Sendable, Hashable, CaseIterable {
    /// Where the provider demands it.
    case automatic = "auto"
    /// Always.
    case required
  }

  /// Whose tokens a client asks for.
  public enum AccountGrant: String, Sendable, Hashable, CaseIterable {
    /// Those of a person who signs in.
    case user
    /// Its own: the client is a machine account (RFC 6749, section 4.4).
    case clientCredentials = "client_credentials"
  }

  /// Creates a value; without arguments, what most providers need.
  public init(
    trustedAudiences: [String] = [], clockSkew: TimeInterval = Self.usualClockSkew, parameters: [String: String] = [:],
    assertionAudience: AssertionAudience? = nil, assertionAlgorithm: SignatureAlgorithm? = nil,
    grant: AccountGrant = .user
  ) {
    self.trustedAudiences = trustedAudiences
    self.clockSkew = clockSkew
    self.parameters = parameters
    self.assertionAudience = assertionAudience
    self.assertionAlgorithm = assertionAlgorithm
    self.grant = grant
  }

  /// The algorithms that client assertions can have.
  public static let assertionAlgorithms: [SignatureAlgorithm] = [.es256, .rs256, .ps256]

  /// The parameters that a client sets itself, or that would change how its request or the answer is read.
  private static let reserved: Set<String> = [
    "client_assertion", "client_assertion_type", "client_id", "client_secret", "code", "code_challenge",
    "code_challenge_method", "code_verifier", "device_code", "dpop_jkt", "grant_type", "nonce", "password",
    "redirect_uri", "refresh_token", "request", "request_uri", "response_mode", "response_type", "scope", "state",
    "username",
  ]
  /// Those of requests for tokens, in addition (RFC 7521, RFC 8693).
  private static let reservedForTokens: Set<String> = [
    "actor_token", "actor_token_type", "assertion", "requested_token_type", "subject_token", "subject_token_type",
  ]

  /// Why a parameter cannot be sent; `nil` if it can.
  public static func problem(ofParameter name: String, _ value: String) -> String? {
    guard (1...longestName).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      return "the name of a parameter must be 1 to \(longestName) printable ASCII characters without spaces"
    }
    if reserved.contains(name) { return "\(name) is set by the client itself, and cannot be a parameter" }
    guard value.utf8.count <= longestValue,
      !value.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { return "the value of \(name) must be at most \(longestValue) bytes without control characters" }
    return nil
  }

  /// Why a parameter cannot be sent with a request for tokens; `nil` if it can.
  public static func problem(ofTokenParameter name: String, _ value: String) -> String? {
    reservedForTokens.contains(name)
      ? "\(name) is set by the client itself, and cannot be a parameter" : problem(ofParameter: name, value)
  }

  /// The parameters of a request for tokens, in the order of their names.
  ///
  /// - Parameter begins: Whether the sign-in begins with it, so that it has `parameters`, too.
  func parametersOfTokenRequest(thatBegins begins: Bool) -> [(String, String)] {
    (begins ? parameters.merging(tokenParameters) { $1 } : tokenParameters).sorted { $0.key < $1.key }
      .map { ($0.key, $0.value) }
  }

  /// The parameters in the order of their names.
  var orderedParameters: [(String, String)] { parameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
}
