/// A request to exchange one token for another (RFC 8693, section 2.1).
public struct TokenExchange: Sendable, Hashable {
  /// The most audiences, resources or scopes.
  public static let mostValues = 16
  /// The longest token, in bytes: 64 KiB.
  public static let longestToken = 65_536

  /// A token with its type.
  public struct Token: Sendable, Hashable {
    /// The token.
    public let text: String
    /// Its type.
    public let type: TokenType

    /// Creates a value.
    public init(_ text: String, type: TokenType) {
      self.text = text
      self.type = type
    }
  }

  /// A type of tokens (section 3): a URI.
  public struct TokenType: Sendable, Hashable {
    /// The names that stand for the types of the RFC.
    public static let names = ["access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt"]

    /// An access token of the provider.
    public static let accessToken = TokenType(uri: prefix + "access_token")
    /// An ID token.
    public static let idToken = TokenType(uri: prefix + "id_token")

    private static let prefix = "urn:ietf:params:oauth:token-type:"

    /// The URI.
    public let uri: String

    private init(uri: String) { self.uri = uri }

    /// The type with this name or URI; `nil` if it is neither.
    public init?(_ text: String) {
      if Self.names.contains(text) {
        uri = Self.prefix + text
      } else if (1...256).contains(text.utf8.count), text.contains(":"),
        text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
      {
        uri = text
      } else {
        return nil
      }
    }
  }

  /// The token of the person or program that the new token is to speak for.
  public let subject: Token
  /// Who acts for the subject; `nil` for the client alone.
  public let actor: Token?
  /// The names of the services that the new token is for.
  public let audiences: [String]
  /// Their URLs.
  public let resources: [String]
  /// The scopes that the new token is to have; empty for what the provider gives.
  public let scopes: [String]
  /// The type of the new token; `nil` for what the provider gives.
  public let requestedType: TokenType?

  /// Creates a request.
  public init(
    subject: Token, actor: Token? = nil, audiences: [String] = [], resources: [String] = [], scopes: [String] = [],
    requestedType: TokenType? = nil
  ) {
    self.subject = subject
    self.actor = actor
    self.audiences = audiences
    self.resources = resources
    self.scopes = scopes
    self.requestedType = requestedType
  }

  /// The fields of the form. `audience` and `resource` may be there several times.
  var fields: [(String, String)] {
    var fields = [("subject_token", subject.text), ("subject_token_type", subject.type.uri)]
    if let actor { fields += [("actor_token", actor.text), ("actor_token_type", actor.type.uri)] }
    fields += audiences.map { ("audience", $0) } + resources.map { ("resource", $0) }
    if !scopes.isEmpty { fields.append(("scope", scopes.joined(separator: " "))) }
    if let requestedType { fields.append(("requested_token_type", requestedType.uri)) }
    return fields
  }
}

extension TokenExchange: CustomReflectable {
  /// No members: the tokens stay out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TokenExchange.Token: CustomStringConvertible, CustomReflectable {
  /// The type.
  public var description: String { type.uri }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
