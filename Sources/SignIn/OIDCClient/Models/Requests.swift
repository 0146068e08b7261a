public import Foundation
public import HTTPExchange

/// A request for a document in JSON.
public struct NetworkRequest: Sendable, Hashable {
  /// The request as it is sent.
  public var exchange: HTTPRequest

  /// A GET with an access token.
  public init(url: URL, accessToken: String? = nil) {
    let fields = accessToken.map { [HTTPField("Authorization", "Bearer \($0)")] } ?? []
    exchange = HTTPRequest(url: url, headers: DocumentExchange.fields + fields)
  }

  /// Any request.
  public init(_ exchange: HTTPRequest) { self.exchange = exchange }
}

/// A grant that is to be exchanged for tokens (RFC 6749, section 4).
public struct TokenRequest: Sendable, Hashable {
  /// The provider.
  public let provider: IdentityProvider
  /// What is exchanged.
  public let grant: Grant

  /// A grant, with what it carries.
  public enum Grant: Sendable, Hashable {
    /// A code from the redirect, with the URI that it came to and the verifier of PKCE.
    case authorizationCode(String, redirectURI: String, verifier: String)
    /// A refresh token.
    case refreshToken(String)
    /// User name and password, with the scopes to ask for.
    case password(Credentials, scopes: [String])
    /// The device code of a device grant.
    case deviceCode(String)
  }

  /// Creates a request.
  public init(provider: IdentityProvider, grant: Grant) {
    self.provider = provider
    self.grant = grant
  }
}

/// A successful answer of a token endpoint (RFC 6749, section 5.1). The ID token in it is not verified yet.
public struct TokenResponse: Sendable, Hashable {
  /// The tokens as they came.
  public let tokens: AuthTokens
  /// Whether the provider said how long the access token is valid. Otherwise `expiresIn` is an assumption of an hour.
  public let namesLifetime: Bool

  /// The lifetime that is assumed where the provider names none, in seconds.
  static let assumedLifetime: TimeInterval = 3600

  /// Reads the answer.
  ///
  /// - Throws: `.tooLarge`, `.malformed`.
  public init(json: [UInt8]) throws(OIDCError) {
    struct Document: Decodable {
      let access_token: String
      let token_type: String
      let expires_in: Lifetime?
      let refresh_token: String?
      let scope: String?
      let id_token: String?
    }
    guard json.count <= ProviderMetadata.largest else { throw .tooLarge("the answer of the token endpoint") }
    guard let document = try? JSONDecoder().decode(Document.self, from: Data(json)), !document.access_token.isEmpty
    else { throw .malformed("the token endpoint's answer has no access_token and token_type") }
    // A token goes into header fields and shell commands.
    for token in [document.access_token, document.refresh_token ?? "x", document.id_token ?? "x"]
    where !token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
      throw .malformed("a token contains characters that are not allowed (RFC 6749, appendix A)")
    }
    // Some providers send an empty text in place of no token. It must not replace the token of before.
    func present(_ token: String?) -> String? { token == "" ? nil : token }
    tokens = AuthTokens(
      accessToken: document.access_token, refreshToken: present(document.refresh_token), tokenType: document.token_type,
      expiresIn: document.expires_in?.seconds ?? Self.assumedLifetime, scope: document.scope,
      idToken: present(document.id_token))
    namesLifetime = document.expires_in != nil
  }

  /// A number, which some providers send as a text.
  private struct Lifetime: Decodable {
    let seconds: TimeInterval

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      let number = (try? container.decode(Double.self)) ?? (try? container.decode(String.self)).flatMap(Double.init)
      // A year is more than any access token lives, and bounds the arithmetic of dates.
      guard let number, number.isFinite, number >= 0 else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a lifetime")
      }
      seconds = min(number, 366 * 86_400)
    }
  }
}

// The grants and tokens stay out of logs.
extension NetworkRequest: CustomStringConvertible, CustomReflectable {
  /// The method and the host.
  public var description: String { "\(exchange.method.rawValue) to \(exchange.url.host() ?? "-")" }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TokenRequest: CustomReflectable {
  /// The provider.
  public var customMirror: Mirror { Mirror(self, children: ["provider": provider.id]) }
}

extension TokenRequest.Grant: CustomStringConvertible, CustomReflectable {
  /// The value of `grant_type`.
  public var description: String {
    switch self {
    case .authorizationCode: "authorization_code"
    case .refreshToken: "refresh_token"
    case .password: "password"
    case .deviceCode: "urn:ietf:params:oauth:grant-type:device_code"
    }
  }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TokenResponse: CustomReflectable {
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
