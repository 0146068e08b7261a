internal import ConfigurationEngine
internal import Foundation
internal import OIDCClient

/// The definition of every setting. The names of endpoints are those of OAuth 2.0 Authorization Server Metadata
/// (RFC 8414).
enum Keys {
  static let version = Key(
    "version", .integer(1...1), default: "1",
    "The version of this format.")
  static let standard = Key(
    "default", .text, example: "work",
    "The provider of commands that name none; the only provider if not set.")
  static let issuer = Key(
    "providers.*.issuer", .url, example: "https://login.example.com/realms/staff",
    "The provider's URL, exactly as in its discovery document. Required with `type: openid_connect`, and with "
      + "`authentication: attestation` unless `attestation_proof` is `dpop`.")
  static let discoveryURL = Key(
    "providers.*.discovery_url", .url, example: "https://login.example.com/metadata",
    "Where the discovery document is, if not at `/.well-known/openid-configuration` below the issuer; it must name the "
      + "issuer in any case.")
  static let name = Key(
    "providers.*.name", .text(form: "1 to 64 characters"), example: "Example Inc.",
    "The name for people; the identifier if not set.")
  static let type = Key(
    "providers.*.type", .oneOf([("openid_connect", ProviderType.openIDConnect), ("oauth2", .oauth2)]),
    default: "openid_connect",
    "The protocol: `oauth2` is for a provider without discovery.")
  static let grant = Key(
    "providers.*.grant", Kind<ProviderVariations.AccountGrant>.choice(), default: "user",
    "`client_credentials` is for a machine account: `bearer token` asks for tokens of the client itself, and no person "
      + "signs in (RFC 6749, section 4.4).")
  static let clientID = Key(
    "providers.*.client_id", .text, isRequired: true, example: "cli",
    "The identifier of the client at the provider.")
  static let clientSecretFile = Key(
    "providers.*.client_secret_file", .file, example: "work.secret",
    "File with the secret of a confidential client.")
  static let authentication = Key(
    "providers.*.authentication", Kind<AuthenticationMethod>.choice(), example: "basic",
    "How the client authenticates at the token endpoint; `basic` with a secret and `none` without one if not set. "
      + "`tls_client_auth` is RFC 8705.")
  static let privateKeyFile = Key(
    "providers.*.private_key_file", .file, example: "work.pem",
    "PEM file with the key of `private_key_jwt`: P-256, or RSA of at least 2,048 bits.")
  static let privateKeyID = Key(
    "providers.*.private_key_id", .text, example: "2026-01",
    "The `kid` of that key.")
  static let privateKeyAlgorithm = Key(
    "providers.*.private_key_algorithm", .word("ES256", "RS256", "PS256"),
    "How the assertion of `private_key_jwt` is signed; `ES256` for P-256 and `RS256` for RSA if not set.")
  static let attestationCommand = Key(
    "providers.*.attestation_command[]", .argument, example: "attester",
    "The program that prints a client attestation, and its arguments. Required with `authentication: attestation`.")
  static let attestationKeyFile = Key(
    "providers.*.attestation_key_file", .file, example: "attested.pem",
    "PEM file with the P-256 key of that attestation; the program may make it. Required with `authentication: "
      + "attestation`.")
  static let attestationProof = Key(
    "providers.*.attestation_proof", Kind<AttestationProof>.choice(),
    "Whether the key signs a proof of its own (`pop`), the DPoP proof stands for it (`dpop`), or the provider decides "
      + "(`auto`); `auto` if not set. Only with `authentication: attestation`.")
  static let certificateFile = Key(
    "providers.*.cert_file", .file, example: "client.pem",
    "PEM file with the client's certificate, and after it at most nine of its authorities: shown to servers of the "
      + "provider that ask for one.")
  static let keyFile = Key(
    "providers.*.key_file", .file, example: "client.key",
    "PEM file with the private key of `cert_file`: P-256, P-384, P-521, or RSA of at least 2,048 bits.")
  static let scopes = Key(
    "providers.*.scopes[]", .text, example: "openid",
    "A scope to request. With `openid_connect` and a person, `openid` is one of them, and the only one if not set; "
      + "otherwise none if not set.")
  static let redirectURI = Key(
    "providers.*.redirect_uri", .url, example: "http://127.0.0.1:8912/callback",
    "Where the browser returns; any free port of 127.0.0.1 if not set.")
  static let passwordGrant = Key(
    "providers.*.password_grant", .boolean, default: "false",
    "Whether the password grant may be used, which RFC 9700 forbids.")
  static let dpop = Key(
    "providers.*.dpop", Kind<DPoPUse>.choice(), default: "auto",
    "Whether tokens are bound to a key of the client (RFC 9449); `auto` where the provider offers it.")
  static let par = Key(
    "providers.*.par", Kind<ProviderVariations.RequestPushing>.choice(), default: "auto",
    "Whether the request of a sign-in in the browser is sent to the provider first (RFC 9126); `auto` where the "
      + "provider demands it.")
  static let trustedAudiences = Key(
    "providers.*.trusted_audiences[]", .text, example: "383168317235462148",
    "An audience that an ID token may have in addition to the client, such as a project (Zitadel) or a sibling client "
      + "(Keycloak).")
  static let clockSkew = Key(
    "providers.*.clock_skew", .duration(0...900_000), default: "5m",
    "The difference between the clocks of provider and client that is allowed.")
  static let parameters = Key(
    "providers.*.parameters.*", .parameter, example: "https://api.example.com",
    "A further parameter of the requests that begin a sign-in, such as `audience` (Auth0), `resource`, `prompt`, "
      + "`login_hint`, `acr_values` or `access_type`; at most 32.")
  static let tokenParameters = Key(
    "providers.*.token_parameters.*", .parameter, example: "https://api.example.com",
    "A further parameter of all requests for tokens, such as `resource`; at most 32.")
  static let assertionAudience = Key(
    "providers.*.assertion_audience", Kind<ProviderVariations.AssertionAudience>.choice(),
    "The audience of the assertion of `private_key_jwt`; the issuer if not set and there is one. Refused with "
      + "`authentication: attestation`, whose proofs are for the issuer.")
  static let account = Key(
    "providers.*.account", .account, example: "ada",
    "The account of commands without `--account`; the one without a name if not set.")
  static let gitHosts = Key(
    "providers.*.git_hosts[]", .gitHost, example: "git.example.com",
    "A host that `bearer git-credential` gives the token to; at most 64, each of one provider.")
  static let gitUsername = Key(
    "providers.*.git_username", .gitUsername, example: ProviderUse.usualGitUsername,
    "The user name for Git, where Git names none; `oauth2` if not set.")
  static let pins = Key(
    "providers.*.pins[]", .pin, example: "sha256/WCxRnsJ9dHrSWFV5QeTMDCSeWONOElMn4+FMqjkBdr0=",
    "The hash of a public key; the server must have one of these keys.")
  static let authorityFile = Key(
    "providers.*.ca_file", .file, example: "roots.pem",
    "PEM file with the roots to trust in place of the system's.")
  static let fallbacks = Key(
    "providers.*.fallbacks[]", .text, example: "backup",
    "A provider to try when this one cannot be reached, in this order.")
  static let tokenEndpoint = Key(
    "providers.*.token_endpoint", .url, isRequired: true, only: .oauth2, example: "https://forge.example.org/token",
    "Where grants are exchanged for tokens.")
  static let authorizationEndpoint = Key(
    "providers.*.authorization_endpoint", .url, only: .oauth2, example: "https://forge.example.org/authorize",
    "Where a user signs in.")
  static let deviceAuthorizationEndpoint = Key(
    "providers.*.device_authorization_endpoint", .url, only: .oauth2, example: "https://forge.example.org/device",
    "Where the device grant begins (RFC 8628).")
  static let pushedAuthorizationEndpoint = Key(
    "providers.*.pushed_authorization_request_endpoint", .url, only: .oauth2,
    example: "https://forge.example.org/par",
    "Where the request of a sign-in is sent first (RFC 9126).")
  static let revocationEndpoint = Key(
    "providers.*.revocation_endpoint", .url, only: .oauth2, example: "https://forge.example.org/revoke",
    "Where tokens are revoked (RFC 7009).")
  static let endSessionEndpoint = Key(
    "providers.*.end_session_endpoint", .url, only: .oauth2, example: "https://forge.example.org/logout",
    "Where the session at the provider ends (RP-initiated logout).")
  static let userinfoEndpoint = Key(
    "providers.*.userinfo_endpoint", .url, only: .oauth2, example: "https://forge.example.org/user",
    "Claims about the user.")
  static let challengeEndpoint = Key(
    "providers.*.challenge_endpoint", .url, only: .oauth2, example: "https://forge.example.org/challenge",
    "Challenges for the proofs of attested clients.")

  /// The keys that discovery replaces.
  static let endpoints = [
    tokenEndpoint, authorizationEndpoint, deviceAuthorizationEndpoint, pushedAuthorizationEndpoint,
    revocationEndpoint, endSessionEndpoint, userinfoEndpoint, challengeEndpoint,
  ]
}

extension ElementCondition {
  /// A provider without discovery.
  static let oauth2 = ElementCondition("type", is: "oauth2", default: "openid_connect")
}
