internal import ConfigurationEngine

/// The settings of certificates by ACME.
extension Keys {
  static let acmeKeys = [KeyDefinition](
    acmeDomains, acmeEmail, acmeDirectory, acmeProfile, acmeCommonName, acmeChallenge, acmeHTTPListen, acmeDNSHook,
    acmeDNSServer, acmeDNSKey, acmeDNSWait, acmeCA, acmeBindingKeyID, acmeBindingKey)

  static let acmeDomains = Key(
    "tls.acme.domains[]", .certificateName, example: "gate.example.com",
    "The names and addresses of the certificate. Port 443 of each must lead to the gate, unless `challenge` says "
      + "otherwise. Setting them accepts the terms of service of the ACME server.")
  static let acmeEmail = Key(
    "tls.acme.email", .emailAddress, example: "ops@example.com",
    "Where the ACME server may write about the certificates.")
  static let acmeDirectory = Key(
    "tls.acme.directory", .directoryURL, example: GateSettings.TLS.ACME.letsEncrypt,
    "The directory of the ACME server. By default Let's Encrypt.")
  static let acmeProfile = Key(
    "tls.acme.profile", .profileName, example: "shortlived",
    "The profile of the certificate, one of those that the ACME server offers. By default the server chooses.")
  static let acmeCommonName = Key(
    "tls.acme.common_name", .boolean, example: "true",
    "Whether the request has the first DNS name as common name too, for old private authorities. By default not.")
  static let acmeChallenge = Key<GateSettings.TLS.ACME.Challenge>(
    "tls.acme.challenge", .choice(), example: "http-01",
    "How control of the names is proven: at port 443 of the listener, at port 80 with `http-01`, or by a TXT record. By "
      + "default `tls-alpn-01`.")
  static let acmeHTTPListen = Key(
    "tls.acme.http_listen", .listeningAddress, example: "127.0.0.1:8080",
    "The address for `http-01`, by default `[::]:80`. Port 80 of each name must lead to it. It answers challenges, and "
      + "redirects all else to `https`.")
  static let acmeDNSHook = Key(
    "tls.acme.dns.hook", .file, example: "/usr/local/lib/sallyport/dns-record",
    "The program that changes TXT records: `PROGRAM present NAME VALUE`, then `PROGRAM cleanup NAME VALUE`.")
  static let acmeDNSServer = Key(
    "tls.acme.dns.server", .dnsServer, example: "192.0.2.53:53",
    "The primary server of the zone, for dynamic updates (RFC 2136) by `nsupdate` instead of a program.")
  static let acmeDNSKey = Key(
    "tls.acme.dns.key_file", .file, credential: "tls.acme.dns.key", example: "dns-update.key",
    "The key of these updates (TSIG), as `tsig-keygen` prints it.")
  static let acmeDNSWait = Key(
    "tls.acme.dns.wait", .duration(0...600_000), example: "30s",
    "How long a new record takes to reach all servers of the zone. By default `10s`.")
  static let acmeCA = Key(
    "tls.acme.ca_file", .file, example: "acme-ca.pem",
    "The CA (PEM) of a private ACME server's own certificate, instead of the system's CAs.")
  static let acmeBindingKeyID = Key(
    "tls.acme.eab.key_id", .text(form: "the name that the authority gave"), example: "kid-1",
    "The name of the key for external account binding, for authorities that require an account of theirs.")
  static let acmeBindingKey = Key(
    "tls.acme.eab.key_file", .file, credential: "tls.acme.eab.key", example: "acme-eab.key",
    "A file with that key in base64url, as the authority shows it.")
}

extension GateSettings.TLS {
  /// Certificates that the gate obtains by itself.
  public struct ACME: Sendable, Hashable {
    /// The directory of Let's Encrypt, which is used unless another one is given.
    public static let letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"
    /// The address of the listener for HTTP-01, unless another one is given.
    static let standardHTTPListen = GateSettings.ListeningAddress(address: "::", port: 80)
    /// The time for a record to reach all servers, unless another one is given.
    static let standardWait = Duration.seconds(10)

    /// DNS names in lower case, wildcards among them, and IP addresses; at least one, without repetitions.
    public var domains: [String]
    public var email: String?
    /// A URL with `https`.
    public var directory: String
    /// `nil`: the server chooses.
    public var profile: String?
    /// Whether requests have the first DNS name, at most 64 characters, as common name.
    public var usesCommonName: Bool
    public var proof: Proof
    /// PEM. An absolute path; validation found a certificate in the file. `nil` for the system's CAs.
    public var caFile: String?
    /// `nil`: the server needs no account of its own.
    public var binding: Binding?

    /// The values of `tls.acme.challenge`.
    public enum Challenge: String, Sendable, Hashable, CaseIterable {
      case tlsALPN = "tls-alpn-01"
      case http = "http-01"
      case dns = "dns-01"
    }

    /// How control of the names is proven.
    public enum Proof: Sendable, Hashable {
      /// A certificate in handshakes of the gate's listener.
      case tlsALPN
      /// A document at this address.
      case http(GateSettings.ListeningAddress)
      /// TXT records, which take `wait` to reach all servers.
      case dns(Records, wait: Duration)
    }

    /// What writes TXT records.
    public enum Records: Sendable, Hashable {
      /// A program. An absolute path.
      case hook(String)
      /// Dynamic updates. The key file is an absolute path; validation found a key in it.
      case server(DNSServer, keyFile: String)
    }

    /// The primary server of a zone.
    public struct DNSServer: Sendable, Hashable {
      /// A host name, or an address without brackets.
      public var host: String
      public var port: UInt16
    }

    /// The address of the listener for HTTP-01; `nil` if there is none.
    public var httpListen: GateSettings.ListeningAddress? {
      if case .http(let address) = proof { address } else { nil }
    }

    /// A key for external account binding.
    public struct Binding: Sendable, Hashable {
      public var keyID: String
      /// An absolute path; validation found a key in the file.
      public var keyFile: String
    }
  }
}
