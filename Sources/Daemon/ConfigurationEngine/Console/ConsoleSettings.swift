/// The console over TLS for people on other machines.
public struct ConsoleSettings: Sendable, Hashable {
  /// What a person may do. Each role may do what the ones before it may.
  public enum Role: String, Sendable, Hashable, CaseIterable { case view, support, admin }

  /// Where the console listens.
  public struct Address: Sendable, Hashable {
    /// An IP address without brackets.
    public var address: String
    /// 0 selects any free port.
    public var port: UInt16

    /// The address as in the configuration.
    public var text: String { address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)" }
  }

  /// The address that people open.
  public struct PublicAddress: Sendable, Hashable {
    /// A host name in lower case or an IP address; an IPv6 address in brackets.
    public var host: String
    public var port: UInt16

    /// The address as browsers show it.
    public var text: String { "https://\(host)" + (port == 443 ? "" : ":\(port)") }
  }

  /// Whose client certificates are accepted.
  public struct ClientAuthority: Sendable, Hashable {
    /// PEM.
    public var file: String
    /// PEM; `nil` for no list.
    public var revocationListFile: String?
  }

  /// A subject of a certificate or a group, and its role.
  public struct Entry: Sendable, Hashable {
    public var name: String
    public var role: Role
  }

  /// An OpenID provider.
  public struct Provider: Sendable, Hashable {
    /// An https URL, or http on loopback.
    public var issuer: String
    public var clientID: String
    /// The file with the client secret; `nil` for a public client.
    public var secretFile: String?
    /// PEM; `nil` for the system's authorities.
    public var authorityFile: String?
    /// Always has `openid`.
    public var scopes: [String]
    /// The claim of the ID token with the groups of the person.
    public var groupsClaim: String
    /// Never empty.
    public var groups: [Entry]
  }

  public var listen: Address
  public var url: PublicAddress
  /// PEM: the console's certificate with its chain.
  public var certificateFile: String
  /// PEM, not encrypted.
  public var keyFile: String
  /// `nil`: clients are not asked for a certificate.
  public var clientAuthority: ClientAuthority?
  /// The subjects of client certificates with a role.
  public var people: [Entry]
  /// `nil`: no one signs in at a provider.
  public var provider: Provider?

  /// The files that the console reads, each with its key.
  public var files: [(key: String, path: String)] {
    let all: [(Key<String>, String?)] = [
      (ConsoleKeys.certificate, certificateFile), (ConsoleKeys.privateKey, keyFile),
      (ConsoleKeys.clientCA, clientAuthority?.file), (ConsoleKeys.revocationLists, clientAuthority?.revocationListFile),
      (ConsoleKeys.clientSecret, provider?.secretFile), (ConsoleKeys.providerCA, provider?.authorityFile),
    ]
    return all.compactMap { key, path in path.map { (key.definition.pattern, $0) } }
  }
}
