public import Foundation

/// What a provider says of itself (OpenID Connect Discovery 1.0, section 3; RFC 8414).
public struct ProviderMetadata: Sendable, Hashable {
  /// The largest document that is read, in bytes: 256 KiB.
  public static let largest = 1 << 18

  /// The issuer: the same as the one that was asked.
  public let issuer: String
  /// Where a person signs in.
  public let authorizationEndpoint: URL?
  /// Where grants are exchanged for tokens.
  public let tokenEndpoint: URL?
  /// The provider's signature keys.
  public let jwksURI: URL?
  /// Claims about the user.
  public let userinfoEndpoint: URL?
  /// Token revocation (RFC 7009).
  public let revocationEndpoint: URL?
  /// RP-initiated logout.
  public let endSessionEndpoint: URL?
  /// The device authorization grant (RFC 8628).
  public let deviceAuthorizationEndpoint: URL?
  /// Whether redirects carry `iss` (RFC 9207).
  public let namesIssuerInRedirects: Bool
  /// Whether tokens can be bound to a P-256 key (RFC 9449).
  public let offersDPoP: Bool
  /// The methods of PKCE; `nil` if the document does not say.
  public let challengeMethods: [String]?

  /// Reads the document of `issuer`.
  ///
  /// Endpoints must be https, or http on loopback: a document that sends tokens over the network in the clear is refused.
  ///
  /// - Throws: `.tooLarge`, `.malformed`, `.otherIssuer`.
  public init(json: [UInt8], issuer: String) throws(OIDCError) {
    guard json.count <= Self.largest else { throw .tooLarge("the discovery document") }
    let document: Document
    do { document = try JSONDecoder().decode(Document.self, from: Data(json)) } catch {
      throw .malformed("the discovery document is no JSON object with the members of OpenID Connect")
    }
    guard document.issuer == issuer else {
      throw .otherIssuer(expected: issuer, found: document.issuer)
    }
    func endpoint(_ text: String?, _ name: String) throws(OIDCError) -> URL? {
      guard let text else { return nil }
      guard let url = URL(string: text), url.isConfidential else {
        throw .malformed("\(name) of the discovery document is not an https URL")
      }
      return url
    }
    self.issuer = document.issuer
    authorizationEndpoint = try endpoint(document.authorization_endpoint, "authorization_endpoint")
    tokenEndpoint = try endpoint(document.token_endpoint, "token_endpoint")
    jwksURI = try endpoint(document.jwks_uri, "jwks_uri")
    userinfoEndpoint = try endpoint(document.userinfo_endpoint, "userinfo_endpoint")
    revocationEndpoint = try endpoint(document.revocation_endpoint, "revocation_endpoint")
    endSessionEndpoint = try endpoint(document.end_session_endpoint, "end_session_endpoint")
    deviceAuthorizationEndpoint = try endpoint(
      document.device_authorization_endpoint, "device_authorization_endpoint")
    namesIssuerInRedirects = document.authorization_response_iss_parameter_supported ?? false
    offersDPoP = document.dpop_signing_alg_values_supported?.contains(SignatureAlgorithm.es256.rawValue) ?? false
    challengeMethods = document.code_challenge_methods_supported
  }

  /// The URL of the document of `issuer` (Discovery, section 4).
  static func url(of issuer: String) -> URL? {
    URL(string: (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration")
  }

  private struct Document: Decodable {
    let issuer: String
    let authorization_endpoint: String?
    let token_endpoint: String?
    let jwks_uri: String?
    let userinfo_endpoint: String?
    let revocation_endpoint: String?
    let end_session_endpoint: String?
    let device_authorization_endpoint: String?
    let authorization_response_iss_parameter_supported: Bool?
    let dpop_signing_alg_values_supported: [String]?
    let code_challenge_methods_supported: [String]?
  }
}

extension URL {
  /// Whether what is sent there stays between client and server, by the rules for a configured endpoint: https, or http on
  /// loopback, without a user or a fragment.
  var isConfidential: Bool { EndpointRules.problems(self, .endpoint).isEmpty }
}
