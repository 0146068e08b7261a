public import Foundation

/// A provider that people sign in with, and how this client talks to it.
///
/// The first eight properties are the whole of what OAuth 2.0 needs. OpenID Connect needs an issuer too: from it come the
/// other endpoints and the keys, by discovery.
public struct IdentityProvider: Sendable, Hashable {
  /// The name in configuration and commands.
  public let id: String
  /// The name for people.
  public let name: String
  /// Where grants are exchanged for tokens. While `needsDiscovery`, it is the issuer's URL, and nothing is sent there.
  public let tokenEndpoint: URL
  /// Where a person signs in, with a browser.
  public let authorizationEndpoint: URL?
  /// The identifier of this client at the provider.
  public let clientID: String
  /// The secret of a confidential client. An app on a device cannot keep one.
  public let clientSecret: String?
  /// The scopes to ask for.
  public let scopes: [String]
  /// The protocol.
  public let type: ProviderType

  /// The issuer, exactly as in its discovery document. Always present with `.openIDConnect`.
  public let issuer: String?
  /// Whether the endpoints are still to be discovered.
  public let needsDiscovery: Bool
  /// The endpoints beyond the seed's two.
  public let endpoints: FurtherEndpoints
  /// How the client proves at the token endpoint which client it is.
  public let authentication: ClientAuthentication
  /// Whether the resource owner password credentials grant may be used. RFC 9700 forbids it; some providers need it.
  public let allowsPasswordGrant: Bool
  /// Whether tokens are bound to a key of this client (RFC 9449).
  public let dpop: DPoPUse
  /// How connections to the provider are secured beyond the system's trust store.
  public let trust: ConnectionTrust
  /// The providers to try, in order, when this one cannot be reached. Never because it refuses.
  public let fallbacks: [String]
  /// What a sign-in at this provider needs, and at others does not.
  public let variations: ProviderVariations

  /// Creates a provider whose endpoints are known.
  public init(
    id: String, name: String, tokenEndpoint: URL, authorizationEndpoint: URL? = nil, clientID: String,
    clientSecret: String? = nil, scopes: [String], type: ProviderType, issuer: String? = nil,
    endpoints: FurtherEndpoints = FurtherEndpoints(), authentication: ClientAuthentication? = nil,
    allowsPasswordGrant: Bool = false, dpop: DPoPUse = .automatic, trust: ConnectionTrust = ConnectionTrust(),
    fallbacks: [String] = [], variations: ProviderVariations = ProviderVariations()
  ) {
    self.init(
      id: id, name: name, tokenEndpoint: tokenEndpoint, authorizationEndpoint: authorizationEndpoint,
      clientID: clientID, clientSecret: clientSecret, scopes: scopes, type: type, issuer: issuer,
      needsDiscovery: false, endpoints: endpoints,
      authentication: authentication ?? (clientSecret == nil ? .none : .basic),
      allowsPasswordGrant: allowsPasswordGrant, dpop: dpop, trust: trust, fallbacks: fallbacks, variations: variations)
  }

  /// Creates a provider of OpenID Connect whose endpoints are to be discovered.
  public init(
    id: String, name: String, issuer: URL, clientID: String, clientSecret: String? = nil, scopes: [String] = ["openid"],
    redirectURI: URL? = nil, authentication: ClientAuthentication? = nil, allowsPasswordGrant: Bool = false,
    dpop: DPoPUse = .automatic, trust: ConnectionTrust = ConnectionTrust(), fallbacks: [String] = [],
    variations: ProviderVariations = ProviderVariations()
  ) {
    self.init(
      id: id, name: name, tokenEndpoint: issuer, authorizationEndpoint: nil, clientID: clientID,
      clientSecret: clientSecret, scopes: scopes, type: .openIDConnect, issuer: issuer.absoluteString,
      needsDiscovery: true, endpoints: FurtherEndpoints(redirectURI: redirectURI),
      authentication: authentication ?? (clientSecret == nil ? .none : .basic),
      allowsPasswordGrant: allowsPasswordGrant, dpop: dpop, trust: trust, fallbacks: fallbacks, variations: variations)
  }

  init(
    id: String, name: String, tokenEndpoint: URL, authorizationEndpoint: URL?, clientID: String, clientSecret: String?,
    scopes: [String], type: ProviderType, issuer: String?, needsDiscovery: Bool, endpoints: FurtherEndpoints,
    authentication: ClientAuthentication, allowsPasswordGrant: Bool, dpop: DPoPUse, trust: ConnectionTrust,
    fallbacks: [String], variations: ProviderVariations
  ) {
    self.id = id
    self.name = name
    self.tokenEndpoint = tokenEndpoint
    self.authorizationEndpoint = authorizationEndpoint
    self.clientID = clientID
    self.clientSecret = clientSecret
    self.scopes = scopes
    self.type = type
    self.issuer = issuer
    self.needsDiscovery = needsDiscovery
    self.endpoints = endpoints
    self.authentication = authentication
    self.allowsPasswordGrant = allowsPasswordGrant
    self.dpop = dpop
    self.trust = trust
    self.fallbacks = fallbacks
    self.variations = variations
  }
}

/// The protocol that a provider speaks.
public enum ProviderType: Sendable, Hashable {
  /// OAuth 2.0: access tokens, no identity.
  case oauth2
  /// OpenID Connect: an ID token says who signed in.
  case openIDConnect
}

/// Endpoints that only some grants and commands need.
public struct FurtherEndpoints: Sendable, Hashable {
  /// The provider's signature keys.
  public var jwksURI: URL?
  /// Where the browser returns to. `nil`: a port of this machine (RFC 8252, section 7.3).
  public var redirectURI: URL?
  /// Claims about the user.
  public var userinfo: URL?
  /// Token revocation (RFC 7009).
  public var revocation: URL?
  /// RP-initiated logout.
  public var endSession: URL?
  /// The device authorization grant (RFC 8628).
  public var deviceAuthorization: URL?
  /// Pushed authorization requests (RFC 9126).
  public var pushedAuthorization: URL?
  /// Challenges for the proofs of attested clients.
  public var challenge: URL?

  /// Creates a list.
  public init(
    jwksURI: URL? = nil, redirectURI: URL? = nil, userinfo: URL? = nil, revocation: URL? = nil, endSession: URL? = nil,
    deviceAuthorization: URL? = nil, pushedAuthorization: URL? = nil, challenge: URL? = nil
  ) {
    self.jwksURI = jwksURI
    self.redirectURI = redirectURI
    self.userinfo = userinfo
    self.revocation = revocation
    self.endSession = endSession
    self.deviceAuthorization = deviceAuthorization
    self.pushedAuthorization = pushedAuthorization
    self.challenge = challenge
  }
}

/// How a client proves at the token endpoint which client it is (OpenID Connect Core 1.0, section 9).
public enum ClientAuthentication: Sendable, Hashable {
  /// A public client: only its identifier.
  case none
  /// HTTP Basic with the secret (RFC 6749, section 2.3.1).
  case basic
  /// The secret in the form.
  case post
  /// A JWT signed with a key of the client (RFC 7523): the private key, P-256 or RSA, as PEM; and its `kid`.
  case privateKeyJWT(pem: String, keyID: String?)
  /// The certificate of the TLS connection, `ConnectionTrust.clientCertificate` (RFC 8705, section 2): one of an
  /// authority that the provider trusts, or a self-signed one that it knows.
  case tlsClientAuth
  /// An attestation that the app's own back end issued for this instance, such as the gate, and a proof of its key
  /// (draft-ietf-oauth-attestation-based-client-auth). `SignInDependencies.attester` gets it.
  case attestation(AttestationProof)
}

/// When tokens are bound to a key of this client (RFC 9449).
public enum DPoPUse: String, Sendable, Hashable, CaseIterable {
  /// Where the provider offers it with ES256.
  case automatic = "auto"
  /// Never.
  case off
  /// Always: a token that is not bound is refused.
  case required
}

/// What a connection to the provider must present, beyond a valid certificate for its name.
public struct ConnectionTrust: Sendable, Hashable {
  /// A PEM file with the roots to trust in place of the system's.
  public var authorityFile: String?
  /// SHA-256 hashes of public keys (SubjectPublicKeyInfo), each of 32 bytes. If there are any, one of them must be the
  /// hash of the server's key.
  public var pins: Set<[UInt8]>
  /// What the client presents to a server that asks for a certificate; `nil` for none.
  public var clientCertificate: ClientCertificate?

  /// Creates a value; without arguments, the system's trust store is all.
  public init(
    authorityFile: String? = nil, pins: Set<[UInt8]> = [], clientCertificate: ClientCertificate? = nil
  ) {
    self.authorityFile = authorityFile
    self.pins = pins
    self.clientCertificate = clientCertificate
  }
}

extension IdentityProvider {
  /// The provider with the endpoints that `metadata` names.
  ///
  /// - Throws: `.notOffered` if there is no token endpoint, or no proof of an attestation that this client can make;
  ///   `.malformed` if there is a token endpoint that cannot be used.
  func completed(by metadata: ProviderMetadata) throws(OIDCError) -> IdentityProvider {
    // Where the provider expects clients with a certificate (RFC 8705, section 5).
    let aliases = trust.clientCertificate == nil ? [:] : metadata.certificateEndpoints
    guard let tokenEndpoint = aliases["token_endpoint"] ?? metadata.tokenEndpoint else {
      throw metadata.fault(of: "token_endpoint") ?? .notOffered("tokens: token_endpoint is missing")
    }
    let endpoints = FurtherEndpoints(
      jwksURI: metadata.jwksURI, redirectURI: endpoints.redirectURI,
      userinfo: aliases["userinfo_endpoint"] ?? metadata.userinfoEndpoint,
      revocation: aliases["revocation_endpoint"] ?? metadata.revocationEndpoint,
      endSession: metadata.endSessionEndpoint,
      deviceAuthorization: aliases["device_authorization_endpoint"] ?? metadata.deviceAuthorizationEndpoint,
      pushedAuthorization: aliases["pushed_authorization_request_endpoint"]
        ?? metadata.pushedAuthorizationEndpoint,
      challenge: metadata.challengeEndpoint)
    var authentication = authentication
    if case .attestation(let proof) = authentication {
      authentication = .attestation(
        try proof.chosen(
          among: metadata.authenticationMethods, dpopAlgorithms: metadata.dpopAlgorithms, allowsDPoP: dpop != .off))
    }
    return IdentityProvider(
      id: id, name: name, tokenEndpoint: tokenEndpoint, authorizationEndpoint: metadata.authorizationEndpoint,
      clientID: clientID, clientSecret: clientSecret, scopes: scopes, type: type, issuer: issuer,
      needsDiscovery: true, endpoints: endpoints, authentication: authentication,
      allowsPasswordGrant: allowsPasswordGrant, dpop: dpop, trust: trust, fallbacks: fallbacks, variations: variations)
  }
}

extension IdentityProvider {
  /// The provider with further parameters for one sign-in. They replace those of the entry.
  public func adding(parameters: [String: String]) -> IdentityProvider {
    var variations = variations
    variations.parameters.merge(parameters) { $1 }
    return IdentityProvider(
      id: id, name: name, tokenEndpoint: tokenEndpoint, authorizationEndpoint: authorizationEndpoint,
      clientID: clientID, clientSecret: clientSecret, scopes: scopes, type: type, issuer: issuer,
      needsDiscovery: needsDiscovery, endpoints: endpoints, authentication: authentication,
      allowsPasswordGrant: allowsPasswordGrant, dpop: dpop, trust: trust, fallbacks: fallbacks, variations: variations)
  }

  /// Whether the client asks for tokens of its own, so that no person signs in.
  public var isOfMachine: Bool { variations.grant == .clientCredentials }

  /// The audience of client assertions.
  var audienceOfAssertions: String {
    switch variations.assertionAudience {
    case .tokenEndpoint: tokenEndpoint.absoluteString
    case .issuer, nil: issuer ?? tokenEndpoint.absoluteString
    }
  }
}

extension IdentityProvider: CustomStringConvertible, CustomReflectable {
  /// The name and the identifier: secrets stay out of logs.
  public var description: String { "\(name) (\(id))" }
  /// No members: `dump` shows no secret.
  public var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}

extension ClientAuthentication: CustomStringConvertible, CustomReflectable {
  /// The name in metadata, without the key.
  public var description: String {
    switch self {
    case .none: "none"
    case .basic: "basic"
    case .post: "post"
    case .privateKeyJWT: "private_key_jwt"
    case .tlsClientAuth: "tls_client_auth"
    case .attestation: "attestation"
    }
  }
  /// No members: a private key stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
