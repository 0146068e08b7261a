/// The response of `POST /auth/oidc/challenge`.
public struct IdentityChallengeResponse: WireValue {
  /// The id to send with the ID token.
  public var challengeId: String
  /// The challenge: 32 random bytes in base64. The `nonce` of the request to the provider is their SHA-256, in
  /// base64url without padding.
  public var challenge: String
  /// The lifetime of the challenge, in seconds.
  public var expiresIn: Int

  /// Creates the response.
  public init(challengeId: String, challenge: String, expiresIn: Int) {
    self.challengeId = challengeId
    self.challenge = challenge
    self.expiresIn = expiresIn
  }

  public static let schema = JSONSchema.object([
    .required("challengeId", .uuid),
    .required(
      "challenge", .string(minLength: 44, maxLength: 44, format: "base64"),
      "The nonce for the provider is the SHA-256 of the 32 decoded bytes, in base64url without padding."),
    .required("expiresIn", .integer(minimum: 1)),
  ])
}

/// The request of `POST /auth/oidc` and `POST /auth/oidc/bind`.
public struct IdentityTokenRequest: WireValue {
  /// The id of the challenge, from `POST /auth/oidc/challenge`.
  public var challengeId: String
  /// The ID token of the provider.
  public var idToken: String

  /// Creates the request.
  public init(challengeId: String, idToken: String) {
    self.challengeId = challengeId
    self.idToken = idToken
  }

  public static let schema = JSONSchema.object([
    .required("challengeId", .uuid), .required("idToken", .idToken, "The ID token, in compact form."),
  ])
}

/// The response of `GET /auth/oidc`.
public struct IdentityList: WireValue {
  /// The user of an identity provider.
  public struct Entry: WireValue {
    /// The issuer.
    public var issuer: String
    /// The identifier of the user at the issuer.
    public var subject: String
    /// The time of the connection, ISO 8601 in UTC.
    public var connectedAt: String
    /// The time of the last sign-in, ISO 8601 in UTC; `null` before the first.
    @Nullable public var lastUsedAt: String?

    /// Creates the entry.
    public init(issuer: String, subject: String, connectedAt: String, lastUsedAt: String?) {
      self.issuer = issuer
      self.subject = subject
      self.connectedAt = connectedAt
      self.lastUsedAt = lastUsedAt
    }

    public static let schema = JSONSchema.object([
      .required("issuer", .text), .required("subject", .text), .required("connectedAt", .time),
      .required("lastUsedAt", .nullable(.time)),
    ])
  }

  /// The connected users of identity providers, by issuer.
  public var identities: [Entry]

  /// Creates the response.
  public init(identities: [Entry]) { self.identities = identities }

  public static let schema = JSONSchema.object([.required("identities", .array(Entry.schema))])
}
