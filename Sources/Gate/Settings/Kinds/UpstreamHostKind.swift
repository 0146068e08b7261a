internal import ConfigurationEngine

/// `Host` of requests to an upstream.
enum UpstreamHost: Sendable, Hashable {
  /// The client's.
  case keep
  /// That of the upstream's address.
  case upstream
  case named(String)

  /// The value of the field; `nil` for the client's.
  func text(for upstream: GateSettings.Upstream) -> String? {
    switch self {
    case .keep: nil
    case .named(let text): text
    case .upstream:
      switch upstream {
      case .webSocket(let host, let port): Self.authority(host, port, standard: 80)
      case .secureWebSocket(let host, let port, _): Self.authority(host, port, standard: 443)
      case .tcp(let host, let port): Self.authority(host, port, standard: 0)
      // A socket file has no name of a host.
      case .unix: "localhost"
      }
    }
  }

  private static func authority(_ host: String, _ port: UInt16, standard: UInt16) -> String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == standard ? name : "\(name):\(port)"
  }
}

extension Kind where Value == UpstreamHost {
  static var upstreamHost: Kind {
    Kind(
      name: "host", form: "`keep`, `upstream`, or a host name with an optional port",
      schema: .matching("^[^/?#@ ]+$"), example: "chat.internal.example"
    ) { text throws(InvalidSetting) in
      if text == "keep" { return .keep }
      if text == "upstream" { return .upstream }
      // The grammar of a host and a port is that of an upstream.
      guard !text.hasSuffix("/"), (try? Kind<UpstreamAddress>.upstream.read("ws://\(text)")) != nil else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not keep, upstream, or a host with an optional port")
      }
      return .named(text)
    }
  }
}
