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
  /// Pushed authorization requests (RFC 9126).
  public let pushedAuthorizationEndpoint: URL?
  /// Challenges for the proofs of attested clients (draft-ietf-oauth-attestation-based-client-auth).
  public let challengeEndpoint: URL?
  /// Whether a sign-in must begin with a pushed request (RFC 9126, section 5).
  public let requiresPushedRequests: Bool
  /// Whether redirects carry `iss` (RFC 9207).
  public let namesIssuerInRedirects: Bool
  /// Whether tokens can be bound to a P-256 key (RFC 9449).
  public var offersDPoP: Bool {
    dpopAlgorithms?.contains(where: SignatureAlgorithm.es256.rawValue.isIdentical) ?? false
  }
  /// The signature algorithms of DPoP proofs; `nil` if the document does not say.
  let dpopAlgorithms: [String]?
  /// The methods of PKCE; `nil` if the document does not say.
  public let challengeMethods: [String]?
  /// The signature algorithms of ID tokens; `nil` if the document does not say.
  public let signatureAlgorithms: [String]?
  /// How clients can authenticate at the token endpoint; `nil` if the document does not say.
  public let authenticationMethods: [String]?
  /// The endpoints for clients with a certificate, by their names, such as `token_endpoint` (RFC 8705, section 5).
  public let certificateEndpoints: [String: URL]
  /// Whether access tokens are bound to the certificate of the client (RFC 8705, section 3.3).
  public let bindsTokensToCertificates: Bool
  /// The members that cannot be used, by name: why.
  private let faults: [String: String]

  private static let name = "the discovery document"

  /// Reads the document of `issuer`.
  ///
  /// Only the issuer can refuse the document. Every other member is optional: one that cannot be used is as absent, and
  /// `fault(of:)` says why. Endpoints must be https, or http on loopback: none that would get tokens in the clear is used.
  ///
  /// - Throws: `.tooLarge`, `.malformed`, `.otherIssuer`.
  public init(json: [UInt8], issuer: String) throws(OIDCError) {
    guard json.count <= Self.largest else { throw .tooLarge(Self.name) }
    let document: Document
    do { document = try ProviderJSON.decode(Document.self, from: json) } catch {
      throw .malformed("\(Self.name) is not a JSON object")
    }
    let found = try document.issuer.usable(in: Self.name)
    guard let found, found.isIdentical(to: issuer) else {
      throw .otherIssuer(expected: issuer, found: found ?? "an unnamed issuer")
    }
    var faults: [String: String] = [:]
    func value<Value>(_ member: Member<Value>) -> Value? {
      faults[member.name] = member.fault
      return member.value
    }
    func endpoint(_ member: Member<String>, in outer: String? = nil) -> URL? {
      let endpoint = member.map {
        URL(string: $0).flatMap { $0.isConfidential ? $0 : nil }
      } otherwise: {
        "\(ShownValue.quoted($0)), not an https URL"
      }
      guard let outer else { return value(endpoint) }
      if let fault = endpoint.fault { faults[outer] = "\(outer): \(fault)" }
      return endpoint.value
    }
    self.issuer = found
    authorizationEndpoint = endpoint(document.authorizationEndpoint)
    tokenEndpoint = endpoint(document.tokenEndpoint)
    jwksURI = endpoint(document.jwksURI)
    userinfoEndpoint = endpoint(document.userinfoEndpoint)
    revocationEndpoint = endpoint(document.revocationEndpoint)
    endSessionEndpoint = endpoint(document.endSessionEndpoint)
    deviceAuthorizationEndpoint = endpoint(document.deviceAuthorizationEndpoint)
    pushedAuthorizationEndpoint = endpoint(document.pushedAuthorizationEndpoint)
    challengeEndpoint = endpoint(document.challengeEndpoint)
    requiresPushedRequests = value(document.requiresPushedRequests) ?? false
    namesIssuerInRedirects = value(document.namesIssuerInRedirects) ?? false
    dpopAlgorithms = value(document.dpopAlgorithms)
    challengeMethods = value(document.challengeMethods)
    signatureAlgorithms = value(document.signatureAlgorithms)
    var aliases: [String: URL] = [:]
    for alias in document.certificateEndpoints { aliases[alias.name] = endpoint(alias, in: "mtls_endpoint_aliases") }
    certificateEndpoints = aliases
    bindsTokensToCertificates = value(document.bindsTokensToCertificates) ?? false
    authenticationMethods = value(document.authenticationMethods)
    self.faults = faults
  }

  /// Why the member called `name` cannot be used; `nil` if it can, or is absent.
  public func fault(of name: String) -> OIDCError? {
    faults[name].map { .malformed("\(Self.name): \($0)") }
  }

  /// Why each member that cannot be used cannot, in the order of their names.
  var allFaults: [OIDCError] { faults.keys.sorted().compactMap(fault) }

  /// The address of the keys.
  ///
  /// - Throws: `.malformed`, `.notOffered` if there is none that can be used.
  public func requiredKeysURL() throws(OIDCError) -> URL {
    guard let jwksURI else { throw fault(of: "jwks_uri") ?? .notOffered("keys: jwks_uri is missing") }
    return jwksURI
  }

  /// Whether this client verifies one of the signatures that the provider names, or the provider names none.
  public var offersUsableSignatures: Bool {
    signatureAlgorithms?.contains { $0.utf8.count <= 32 && SignatureAlgorithm(rawValue: $0) != nil } ?? true
  }

  /// - Throws: `.malformed`, `.notOffered` if the provider does not offer PKCE with S256. A provider that does not say is
  ///   taken to offer it.
  func requireS256() throws(OIDCError) {
    if let fault = fault(of: "code_challenge_methods_supported") { throw fault }
    guard challengeMethods?.contains(where: PKCE.method.isIdentical) ?? true else {
      throw .notOffered("PKCE with \(PKCE.method)")
    }
  }

  /// The URL of the document of `issuer` (Discovery, section 4).
  static func url(of issuer: String) -> URL? {
    URL(string: (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration")
  }

  private struct Document: Decodable {
    let issuer: Member<String>
    let authorizationEndpoint: Member<String>
    let tokenEndpoint: Member<String>
    let jwksURI: Member<String>
    let userinfoEndpoint: Member<String>
    let revocationEndpoint: Member<String>
    let endSessionEndpoint: Member<String>
    let deviceAuthorizationEndpoint: Member<String>
    let pushedAuthorizationEndpoint: Member<String>
    let challengeEndpoint: Member<String>
    let requiresPushedRequests: Member<Bool>
    let namesIssuerInRedirects: Member<Bool>
    let dpopAlgorithms: Member<[String]>
    let challengeMethods: Member<[String]>
    let signatureAlgorithms: Member<[String]>
    let certificateEndpoints: [Member<String>]
    let bindsTokensToCertificates: Member<Bool>
    let authenticationMethods: Member<[String]>

    init(from decoder: any Decoder) throws {
      let members = try ProviderMembers(from: decoder)
      issuer = members.text("issuer")
      authorizationEndpoint = members.text("authorization_endpoint")
      tokenEndpoint = members.text("token_endpoint")
      jwksURI = members.text("jwks_uri")
      userinfoEndpoint = members.text("userinfo_endpoint")
      revocationEndpoint = members.text("revocation_endpoint")
      endSessionEndpoint = members.text("end_session_endpoint")
      deviceAuthorizationEndpoint = members.text("device_authorization_endpoint")
      pushedAuthorizationEndpoint = members.text("pushed_authorization_request_endpoint")
      challengeEndpoint = members.text("challenge_endpoint")
      requiresPushedRequests = members.truth("require_pushed_authorization_requests")
      namesIssuerInRedirects = members.truth("authorization_response_iss_parameter_supported")
      dpopAlgorithms = members.texts("dpop_signing_alg_values_supported")
      challengeMethods = members.texts("code_challenge_methods_supported")
      signatureAlgorithms = members.texts("id_token_signing_alg_values_supported")
      let aliases = members.members(of: "mtls_endpoint_aliases")
      certificateEndpoints = Self.aliases.compactMap { name in aliases?.text(name) }
      bindsTokensToCertificates = members.truth("tls_client_certificate_bound_access_tokens")
      authenticationMethods = members.texts("token_endpoint_auth_methods_supported")
    }

    /// The endpoints that can have an alias.
    private static let aliases = [
      "token_endpoint", "revocation_endpoint", "device_authorization_endpoint", "userinfo_endpoint",
      "pushed_authorization_request_endpoint",
    ]
  }
}

extension URL {
  /// Whether what is sent there stays between client and server, by the rules for a configured endpoint: https, or http on
  /// loopback, without a user or a fragment.
  var isConfidential: Bool { EndpointRules.problems(self, .endpoint).isEmpty }
}
