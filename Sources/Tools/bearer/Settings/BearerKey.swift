/// A key at the top of the file.
enum TopKey: String, CaseIterable {
  case version
  case standard = "default"
  case providers
}

/// A key of a provider. The names of endpoints are those of OAuth 2.0 Authorization Server Metadata (RFC 8414).
enum ProviderKey: String, CaseIterable {
  case issuer
  case discoveryURL = "discovery_url"
  case name, type, grant
  case clientID = "client_id"
  case clientSecretFile = "client_secret_file"
  case authentication
  case privateKeyFile = "private_key_file"
  case privateKeyID = "private_key_id"
  case privateKeyAlgorithm = "private_key_algorithm"
  case attestationCommand = "attestation_command"
  case attestationKeyFile = "attestation_key_file"
  case attestationProof = "attestation_proof"
  case certificateFile = "cert_file"
  case keyFile = "key_file"
  case scopes
  case redirectURI = "redirect_uri"
  case passwordGrant = "password_grant"
  case dpop
  case par
  case trustedAudiences = "trusted_audiences"
  case clockSkew = "clock_skew"
  case parameters
  case tokenParameters = "token_parameters"
  case assertionAudience = "assertion_audience"
  case account
  case gitHosts = "git_hosts"
  case gitUsername = "git_username"
  case pins
  case authorityFile = "ca_file"
  case fallbacks
  case tokenEndpoint = "token_endpoint"
  case authorizationEndpoint = "authorization_endpoint"
  case deviceAuthorizationEndpoint = "device_authorization_endpoint"
  case pushedAuthorizationEndpoint = "pushed_authorization_request_endpoint"
  case revocationEndpoint = "revocation_endpoint"
  case endSessionEndpoint = "end_session_endpoint"
  case userinfoEndpoint = "userinfo_endpoint"
  case challengeEndpoint = "challenge_endpoint"

  /// The keys that discovery replaces.
  static let endpoints: [ProviderKey] = [
    .tokenEndpoint, .authorizationEndpoint, .deviceAuthorizationEndpoint, .pushedAuthorizationEndpoint,
    .revocationEndpoint, .endSessionEndpoint, .userinfoEndpoint, .challengeEndpoint,
  ]

  /// The key that sets `field` of a `ProviderFault`; `nil` for the identifier, which is a key itself.
  init?(field: String) {
    switch field {
    case "client_secret": self = .clientSecretFile
    case "private_key": self = .privateKeyFile
    default: self.init(rawValue: field)
    }
  }
}

extension BearerSettings {
  /// The keys at the top of the file.
  public static let topKeys: [String] = TopKey.allCases.map(\.rawValue)
  /// The keys of a provider.
  public static let providerKeys: [String] = ProviderKey.allCases.map(\.rawValue)
}
