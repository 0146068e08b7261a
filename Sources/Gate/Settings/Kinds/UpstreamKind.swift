internal import ConfigurationEngine

/// A parsed upstream URL, without the TLS settings.
struct UpstreamAddress: Sendable, Hashable {
  enum Scheme: String, Sendable, CaseIterable { case ws, wss, tcp, unix }

  let scheme: Scheme
  /// A host name, or an address without brackets; for a Unix socket, its path.
  let host: String
  let port: UInt16
}

extension Kind where Value == UpstreamAddress {
  /// The upstream of a route: `ws://host:port`, `wss://host:port`, `unix:/path` or `tcp://host:port`.
  static var upstream: Kind {
    Kind(
      name: "upstream", form: "`ws://host:port`, `wss://host:port`, `unix:/path` or `tcp://host:port`",
      schema: .matching("^(\(pattern))$"), example: "ws://127.0.0.1:8080"
    ) { text throws(InvalidSetting) in
      if text.hasPrefix("unix:") {
        return UpstreamAddress(scheme: .unix, host: try SocketPath.read(text), port: 0)
      }
      let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) has no scheme: use ws://, wss://, unix: or tcp://",
          suggestion: (try? authority(parts[0], of: .ws)) == nil ? nil : "ws://\(text)")
      }
      guard let scheme = UpstreamAddress.Scheme(rawValue: String(parts[0])) else {
        let meant = ["http": "ws", "https": "wss"][parts[0].lowercased()] ?? parts[0].lowercased()
        throw InvalidSetting(
          "\(InvalidSetting.quoted(String(parts[0]))) is not an upstream scheme: use ws, wss, unix or tcp",
          suggestion: UpstreamAddress.Scheme(rawValue: meant).map { "\($0.rawValue)://\(parts[1])" })
      }
      return try authority(parts[1], of: scheme)
    }
  }

  fileprivate static var pattern: String { "wss?://[^/?#@,]+/?|tcp://[^/?#@,]+:[0-9]+|unix:/[^/,][^,]*" }

  private static func authority(_ rest: Substring, of scheme: UpstreamAddress.Scheme) throws(InvalidSetting)
    -> UpstreamAddress
  {
    let authority = rest.prefix { !"/?#".contains($0) }
    guard rest.count == authority.count || rest.dropFirst(authority.count) == "/" && scheme != .tcp else {
      throw InvalidSetting(
        "an upstream URL cannot have a path: the client's target is forwarded, which routes[].rewrite can change",
        suggestion: "\(scheme.rawValue)://\(authority)")
    }
    guard !authority.contains("@") else { throw InvalidSetting("an upstream URL cannot have a user name or password") }
    let (host, port) = try hostAndPort(authority)
    if let port {
      guard let value = Digits.value(of: port), let number = UInt16(exactly: value), number > 0 else {
        throw InvalidSetting("\(InvalidSetting.quoted(String(port))) is not a port number, 1 to 65535")
      }
      return UpstreamAddress(scheme: scheme, host: host, port: number)
    }
    guard scheme != .tcp else { throw InvalidSetting("tcp:// needs a port: tcp://host:port") }
    return UpstreamAddress(scheme: scheme, host: host, port: scheme == .wss ? 443 : 80)
  }

  private static func hostAndPort(_ authority: Substring) throws(InvalidSetting) -> (host: String, port: Substring?) {
    if authority.hasPrefix("[") {
      let host = authority.dropFirst().prefix { $0 != "]" }
      let rest = authority.dropFirst(host.count + 1)
      guard rest.hasPrefix("]"), NetworkName.isIPv6(host), rest.count == 1 || rest.hasPrefix("]:") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(String(authority))) is not an IPv6 address in brackets with an optional port")
      }
      return (String(host), rest.count == 1 ? nil : rest.dropFirst(2))
    }
    if NetworkName.isIPv6(authority) {
      throw InvalidSetting("an IPv6 address needs brackets", suggestion: "[\(authority)]")
    }
    let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty else { throw InvalidSetting("the upstream URL has no host") }
    guard NetworkName.isHostName(host) else {
      throw InvalidSetting("\(InvalidSetting.quoted(String(host))) is not a host name")
    }
    return (String(host), parts.count == 2 ? parts[1] : nil)
  }
}

extension Kind where Value == [UpstreamAddress] {
  /// The servers of a route, which serve the same.
  static var upstreams: Kind {
    var kind = Kind(
      name: "upstreams",
      form: "\(Kind<UpstreamAddress>.upstream.form), or several as a list or with commas between them",
      schema: .list(of: Kind<UpstreamAddress>.pattern), example: Kind<UpstreamAddress>.upstream.example
    ) { text throws(InvalidSetting) in
      let texts = text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingBlanks() }
      guard texts.count <= mostServers else { throw InvalidSetting("more than \(mostServers) servers") }
      var servers: [UpstreamAddress] = []
      for text in texts {
        guard !text.isEmpty else { throw InvalidSetting("a server is missing before or after a comma") }
        let server = try Kind<UpstreamAddress>.upstream.read(text)
        guard !servers.contains(server) else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is given twice") }
        guard servers.first.map({ $0.scheme == server.scheme }) ?? true else {
          throw InvalidSetting("the servers of a route have one scheme, not \(servers[0].scheme) and \(server.scheme)")
        }
        servers.append(server)
      }
      return servers
    }
    kind.takesList = true
    return kind
  }

  private static var mostServers: Int { 64 }
}

extension Substring {
  fileprivate func trimmingBlanks() -> String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
