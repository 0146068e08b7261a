/// The settings of a console over TLS, which every service with an admin server has alike.
public enum ConsoleKeys {
  public static let listen = Key(
    "admin.console.listen", .consoleAddress, example: "0.0.0.0:7443",
    "Where the console for people on other machines listens, with TLS: `console --serve`. By default there is none.")
  static let url = Key(
    "admin.console.url", .consoleURL, example: "https://console.example.com:7443",
    "The address that people open. The console answers at no other host.")
  static let certificate = Key(
    "admin.console.cert_file", .file, example: "console.pem", "The console's certificate chain (PEM), leaf first.")
  static let privateKey = Key(
    "admin.console.key_file", .file, example: "console.key",
    "The private key (PEM) of that certificate, not encrypted.")
  static let clientCA = Key(
    "admin.console.client_ca_file", .file, example: "staff-ca.pem",
    "The CA (PEM) of the client certificates with which people sign in.")
  static let revocationLists = Key(
    "admin.console.crl_file", .file, example: "staff-crl.pem",
    "Lists of revoked client certificates (PEM), one of each CA. Without a valid list of its CA, a certificate is refused."
  )
  static let subject = Key(
    "admin.console.people[].subject", .subject, isRequired: true, example: "CN=alice",
    "The subject of a client certificate, exactly as the sign-in page shows it.")
  static let personRole = Key<ConsoleSettings.Role>(
    "admin.console.people[].role", .choice(), isRequired: true, "What this person may do.")
  static let issuer = Key(
    "admin.console.oidc.issuer", .consoleIssuer, example: "https://id.example.com",
    "The OpenID provider at which people sign in, by its issuer.")
  static let clientID = Key(
    "admin.console.oidc.client_id", .text, example: "gate-console", "The client id of the console at the provider.")
  static let clientSecret = Key(
    "admin.console.oidc.client_secret_file", .file, example: "console-client.secret",
    "A file with the client secret on its first line. By default the console is a public client, with PKCE alone.")
  static let providerCA = Key(
    "admin.console.oidc.ca_file", .file, example: "provider-ca.pem",
    "The CAs (PEM) of the provider's certificate, instead of the system's.")
  static let scopes = Key(
    "admin.console.oidc.scopes[]", .scope, example: "groups",
    "Scopes to ask for in addition to `openid`, such as the one with which the provider names groups.")
  static let groupsClaim = Key(
    "admin.console.oidc.groups_claim", .text, default: "groups",
    "The claim of the ID token with the person's groups: a list of texts.")
  static let group = Key(
    "admin.console.oidc.groups[].name", .text, isRequired: true, example: "gate-support",
    "A group of the provider, exactly as its tokens have it.")
  static let groupRole = Key<ConsoleSettings.Role>(
    "admin.console.oidc.groups[].role", .choice(), isRequired: true, "What the members of this group may do.")

  /// All definitions, for the settings table of a service.
  public static let definitions = [KeyDefinition](
    listen, url, certificate, privateKey, clientCA, revocationLists, subject, personRole, issuer, clientID,
    clientSecret, providerCA, scopes, groupsClaim, group, groupRole)

  /// The path of the section.
  public static let section = SettingPath.root["admin"]["console"]
}
