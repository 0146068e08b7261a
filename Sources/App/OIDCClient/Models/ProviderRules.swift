internal import Foundation

/// One rule that the description of a provider breaks.
public struct ProviderFault: Sendable, Hashable, CustomStringConvertible {
  /// The field, by its name in the metadata of OAuth 2.0 and OpenID Connect and in configuration files, such as
  /// `token_endpoint`. An element of a list has its index: `scopes[1]`.
  public let field: String
  /// What is wrong with the value, such as "must not be empty". Contains no secret.
  public let reason: String

  /// The fault as `field: reason`.
  public var description: String { "\(field): \(reason)" }
}

extension IdentityProvider {
  /// The rules that this provider breaks, in the order of its properties; empty if a client can use it.
  ///
  /// Judges the value by itself: sends nothing, reads no file, and knows no other provider. The rules refuse
  /// providers that would get codes or tokens over an insecure connection, or that would fail at the first request.
  public var faults: [ProviderFault] {
    identityFaults + endpointFaults + clientFaults + scopeFaults + trustFaults + fallbackFaults + variationFaults
  }

  private var identityFaults: [ProviderFault] {
    var faults: [ProviderFault] = []
    if !Self.isIdentifier(id) {
      faults.append(
        ProviderFault(
          field: "id",
          reason: "must be 1 to 64 letters, digits, hyphens, underscores and periods, a letter or digit first"))
    }
    if !(1...64).contains(name.count) || name.unicodeScalars.contains(where: \.isControl) {
      faults.append(ProviderFault(field: "name", reason: "must be 1 to 64 characters on one line"))
    }
    return faults
  }

  /// Identifiers are arguments of commands and parts of file names.
  private static func isIdentifier(_ text: String) -> Bool {
    let bytes = text.utf8
    guard (1...64).contains(bytes.count), let first = bytes.first, isLetterOrDigit(first) else { return false }
    return bytes.allSatisfy { isLetterOrDigit($0) || [UInt8]("-_.".utf8).contains($0) }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
  }

  private var endpointFaults: [ProviderFault] {
    var faults: [ProviderFault] = []
    func judge(_ url: URL?, _ field: String, _ use: EndpointRules.Use = .endpoint) {
      guard let url else { return }
      faults += EndpointRules.problems(url, use).map { ProviderFault(field: field, reason: $0) }
    }
    if let issuer {
      if let url = EndpointRules.url(issuer) {
        judge(url, "issuer", .issuer)
      } else {
        faults.append(ProviderFault(field: "issuer", reason: EndpointRules.absolute))
      }
    } else if type == .openIDConnect {
      faults.append(ProviderFault(field: "issuer", reason: "is required with OpenID Connect"))
    }
    // Before discovery, the token endpoint is the issuer.
    if !needsDiscovery { judge(tokenEndpoint, "token_endpoint") }
    judge(authorizationEndpoint, "authorization_endpoint")
    judge(endpoints.jwksURI, "jwks_uri")
    judge(endpoints.userinfo, "userinfo_endpoint")
    judge(endpoints.revocation, "revocation_endpoint")
    judge(endpoints.endSession, "end_session_endpoint")
    judge(endpoints.deviceAuthorization, "device_authorization_endpoint")
    judge(endpoints.pushedAuthorization, "pushed_authorization_request_endpoint")
    judge(endpoints.challenge, "challenge_endpoint")
    judge(endpoints.redirectURI, "redirect_uri", .redirect)
    return faults
  }

  private var clientFaults: [ProviderFault] {
    var faults: [ProviderFault] = []
    func refuse(_ field: String, _ reason: String) { faults.append(ProviderFault(field: field, reason: reason)) }
    // RFC 6749, appendix A.1.
    if clientID.isEmpty || !clientID.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
      refuse("client_id", clientID.isEmpty ? "must not be empty" : "must be printable ASCII")
    }
    if let clientSecret {
      if clientSecret.isEmpty { refuse("client_secret", "must not be empty") }
      if clientSecret.unicodeScalars.contains(where: \.isControl) {
        refuse("client_secret", "must not contain line breaks or other control characters")
      }
    }
    switch authentication {
    case .none:
      if clientSecret != nil { refuse("client_secret", "is not used with authentication none; use basic or post") }
    case .basic, .post:
      if clientSecret == nil {
        refuse("authentication", "\(authentication == .basic ? "basic" : "post") needs a client secret")
      }
    case .privateKeyJWT(let pem, let keyID):
      if clientSecret != nil { refuse("client_secret", "is not used with private_key_jwt") }
      if let problem = ClientKeyRule.problem(pem) { refuse("private_key", problem) }
      if keyID == "" { refuse("private_key_id", "must not be empty") }
    case .tlsClientAuth:
      if clientSecret != nil { refuse("client_secret", "is not used with tls_client_auth") }
      if trust.clientCertificate == nil { refuse("authentication", "tls_client_auth needs cert_file and key_file") }
    case .attestation(let proof):
      if clientSecret != nil { refuse("client_secret", "is not used with attestation") }
      if proof == .dpop, dpop == .off { refuse("attestation_proof", "dpop needs dpop: auto or required") }
      if proof != .dpop, issuer == nil { refuse("authentication", "attestation needs issuer: its proofs are for that") }
      if variations.assertionAudience != nil {
        refuse("assertion_audience", "is not used with attestation, whose proofs are for the issuer")
      }
    }
    if isOfMachine {
      if authentication == .none {
        refuse(
          "grant",
          "client_credentials needs a client that authenticates: basic, post, private_key_jwt, tls_client_auth or "
            + "attestation")
      }
      if allowsPasswordGrant { refuse("password_grant", "is for people, not for client_credentials") }
      if endpoints.redirectURI != nil { refuse("redirect_uri", "is not used with client_credentials") }
    }
    return faults
  }

  private var scopeFaults: [ProviderFault] {
    var faults: [ProviderFault] = []
    for (index, scope) in scopes.enumerated() where !Self.isScope(scope) {
      faults.append(
        ProviderFault(
          field: "scopes[\(index)]", reason: "must be printable ASCII without spaces, quotation marks and backslashes"))
    }
    // A machine account has no identity.
    if type == .openIDConnect, !isOfMachine, !scopes.contains("openid") {
      faults.append(ProviderFault(field: "scopes", reason: "must contain openid with OpenID Connect"))
    }
    return faults
  }

  /// RFC 6749, section 3.3: `scope-token`.
  private static func isScope(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
  }

  private var trustFaults: [ProviderFault] {
    var faults: [ProviderFault] = []
    if trust.pins.contains(where: { $0.count != 32 }) {
      faults.append(ProviderFault(field: "pins", reason: "must be SHA-256 hashes, of 32 bytes each"))
    }
    if trust.authorityFile == "" { faults.append(ProviderFault(field: "ca_file", reason: "must not be empty")) }
    if let problem = trust.clientCertificate?.problem {
      faults.append(
        ProviderFault(field: problem.part == .key ? "key_file" : "cert_file", reason: problem.reason))
    }
    return faults
  }

  private var variationFaults: [ProviderFault] {
    var faults: [ProviderFault] = []
    func refuse(_ field: String, _ reason: String) { faults.append(ProviderFault(field: field, reason: reason)) }
    for (index, audience) in variations.trustedAudiences.enumerated() {
      if audience.isEmpty || audience.unicodeScalars.contains(where: \.isControl) {
        refuse("trusted_audiences[\(index)]", "must be the text of an audience, without control characters")
      }
    }
    if !(0...ProviderVariations.largestClockSkew).contains(variations.clockSkew) {
      refuse("clock_skew", "must be at most 15 minutes")
    }
    if variations.parameters.count > ProviderVariations.mostParameters {
      refuse("parameters", "must be at most \(ProviderVariations.mostParameters)")
    }
    for (name, value) in variations.orderedParameters {
      if let problem = ProviderVariations.problem(ofParameter: name, value) { refuse("parameters", problem) }
    }
    if variations.tokenParameters.count > ProviderVariations.mostParameters {
      refuse("token_parameters", "must be at most \(ProviderVariations.mostParameters)")
    }
    for (name, value) in variations.tokenParameters.sorted(by: { $0.key < $1.key }) {
      if let problem = ProviderVariations.problem(ofTokenParameter: name, value) { refuse("token_parameters", problem) }
    }
    if let url = variations.discoveryURL {
      for problem in EndpointRules.problems(url, .endpoint) { refuse("discovery_url", problem) }
      if !needsDiscovery { refuse("discovery_url", "is only used with openid_connect") }
    }
    if variations.pushing == .required, !needsDiscovery, endpoints.pushedAuthorization == nil {
      refuse("par", "needs pushed_authorization_request_endpoint")
    }
    if let algorithm = variations.assertionAlgorithm {
      if case .privateKeyJWT(let pem, _) = authentication {
        if ClientKeyRule.problem(pem) == nil, !ClientKeyRule.algorithms(pem).contains(algorithm) {
          refuse("private_key_algorithm", "is not one for the key: P-256 has ES256, RSA has RS256 and PS256")
        }
      } else {
        refuse("private_key_algorithm", "is only used with authentication private_key_jwt")
      }
    }
    if variations.assertionAudience == .issuer, issuer == nil {
      refuse("assertion_audience", "cannot be the issuer: there is none")
    }
    return faults
  }

  private var fallbackFaults: [ProviderFault] {
    fallbacks.enumerated().compactMap { index, fallback in
      let reason =
        fallback == id
        ? "must not be the provider itself" : fallbacks[..<index].contains(fallback) ? "is listed twice" : nil
      return reason.map { ProviderFault(field: "fallbacks[\(index)]", reason: $0) }
    }
  }
}

extension Unicode.Scalar {
  fileprivate var isControl: Bool { properties.generalCategory == .control }
}
