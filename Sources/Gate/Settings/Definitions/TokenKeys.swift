internal import ConfigurationEngine

/// The settings of the section `tokens`.
extension Keys {
  static let tokenKeys = [KeyDefinition](
    tokenAudience, tokenLifetime, tokenURL, tokenClientID, tokenClientApps, tokenClientLifetime, tokenClientClaims)

  static let tokenAudience = Key(
    "tokens.audiences[]", .nameOrURL(form: "a name, or the URL of the service"), example: "https://api.example.com",
    "The audiences (`aud`) that `POST /attest/token` issues tokens for. By default none, and the path does not exist.")
  static let tokenLifetime = Key(
    "tokens.lifetime", .duration(10_000...300_000), default: "5m",
    "How long a token is valid. A revoked key gets no further token, so a revocation takes at most this long.")
  static let tokenURL = Key(
    "tokens.url", .publicURL, example: "https://gate.example.com/attest/token",
    "The URL that DPoP proofs must name (`htu`). By default `https://`, the `Host` of the request, `/attest/token`.")
  static let tokenClientID = Key(
    "tokens.clients[].client_id", .clientID, example: "wallet",
    "A client of an authorization server, whose app gets client attestations at `POST /attest/token`.")
  static let tokenClientApps = Key(
    "tokens.clients[].apps[]", .text(form: "`TEAMID.bundle.id`, or an Android package"),
    example: "TEAMID1234.com.example.wallet",
    "The apps of this client, which `app_attest.apps` has. Left out, all of them; an empty list is refused.")
  static let tokenClientLifetime = Key(
    "tokens.clients[].lifetime", .duration(60_000...86_400_000), default: "1h",
    "How long an attestation is valid, at most `identity.key_overlap`. A revoked key gets no further one.")
  static let tokenClientClaims = Key(
    "tokens.clients[].claims[]", .claim, example: "wallet_name=Example Wallet",
    "Further claims of the attestation, each with a text.")
}

extension GateSettings {
  /// The tokens and client attestations of `POST /attest/token`.
  public struct Tokens: Sendable, Hashable {
    /// A client of an authorization server.
    public struct Client: Sendable, Hashable {
      public var id: String
      /// At least one.
      public var apps: [String]
      /// One minute to a day, and no longer than identity keys are published after their last use.
      public var lifetime: Duration
      /// Name and value of further claims, with unique names.
      public var claims: [Claim]
    }
    /// A claim with a text.
    public struct Claim: Sendable, Hashable {
      public var name: String
      public var value: String
    }

    /// Without repetitions, and none that an upstream has. Empty only if there are clients.
    public var audiences: [String]
    /// 10 seconds to 5 minutes.
    public var lifetime: Duration
    /// An `https` URL without query and fragment; `nil` for the `Host` of each request.
    public var url: String?
    /// With unique identifiers.
    public var clients: [Client] = []
  }
}

extension Kind where Value == GateSettings.Tokens.Claim {
  /// `NAME=VALUE`.
  static var claim: Kind {
    let text = Kind<String>.text(form: "`NAME=VALUE`")
    return Kind(name: "claim", form: text.form, schema: text.schema, example: "wallet_name=Example Wallet") {
      value throws(InvalidSetting) in
      let value = try text.read(value)
      guard let mark = value.firstIndex(of: "="), mark != value.startIndex,
        value[..<mark].utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
      else {
        throw InvalidSetting("\(InvalidSetting.quoted(value)) is not NAME=VALUE, with a name in ASCII without blanks")
      }
      let name = String(value[..<mark])
      guard !["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "cnf"].contains(name) else {
        throw InvalidSetting("\(name) is a claim of the gate's own")
      }
      return GateSettings.Tokens.Claim(name: name, value: String(value[value.index(after: mark)...]))
    }
  }
}

extension Kind where Value == String {
  /// An identifier of a client at an authorization server (RFC 6749, appendix A.1).
  static var clientID: Kind {
    let text = Kind<String>.text(form: "the identifier of a client, in printable ASCII")
    return Kind(name: text.name, form: text.form, schema: .matching("^[ -~]+$"), example: "wallet") {
      value throws(InvalidSetting) in
      let value = try text.read(value)
      guard value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
        throw InvalidSetting("\(InvalidSetting.quoted(value)) is not printable ASCII, as a client_id is (RFC 6749)")
      }
      return value
    }
  }

  /// A URL at which clients reach this gate.
  static var publicURL: Kind {
    Kind(
      name: "URL", form: "a URL that begins with `https://`, without query",
      schema: .matching("^https://[^/?#@]+/[^?#]*$"),
      example: "https://gate.example.com/attest/token"
    ) { text throws(InvalidSetting) in
      // The grammar of host and port is that of another key.
      let url = try Kind<String>.directoryURL.read(text)
      guard !url.contains("?"), !url.contains("@"), !url.contains("%") else {
        throw InvalidSetting("\(InvalidSetting.quoted(url)) has a user, a query or an escape")
      }
      guard url.dropFirst("https://".count).contains("/") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(url)) has no path", suggestion: "\(url)/attest/token")
      }
      return url
    }
  }
}
