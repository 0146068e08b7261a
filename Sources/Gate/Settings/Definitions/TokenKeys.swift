internal import ConfigurationEngine

/// The settings of the section `tokens`.
extension Keys {
  static let tokenAudience = Key(
    "tokens.audiences[]", .nameOrURL(form: "a name, or the URL of the service"), example: "https://api.example.com",
    "The audiences (`aud`) that `POST /attest/token` issues tokens for. By default none, and the path does not exist.")
  static let tokenLifetime = Key(
    "tokens.lifetime", .duration(10_000...300_000), default: "5m",
    "How long a token is valid. A revoked key gets no further token, so a revocation takes at most this long.")
  static let tokenURL = Key(
    "tokens.url", .publicURL, example: "https://gate.example.com/attest/token",
    "The URL that DPoP proofs must name (`htu`). By default `https://`, the `Host` of the request, `/attest/token`.")
}

extension GateSettings {
  /// The tokens of `POST /attest/token`.
  public struct Tokens: Sendable, Hashable {
    /// At least one, without repetitions, and none that an upstream has.
    public var audiences: [String]
    /// 10 seconds to 5 minutes.
    public var lifetime: Duration
    /// An `https` URL without query and fragment; `nil` for the `Host` of each request.
    public var url: String?
  }
}

extension Kind where Value == String {
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
