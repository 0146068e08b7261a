internal import ConfigurationEngine

/// A server that the gate sends to by HTTP.
public struct ServerAddress: Sendable, Hashable {
  public let isSecure: Bool
  /// A host name, or an address without brackets.
  public let host: String
  public let port: UInt16
  /// With a slash at its begin; empty or `/` for the server's root. For a collector it is the part before `/v1/traces`
  /// and `/v1/metrics`, without a slash at its end.
  public let path: String

  public init(isSecure: Bool, host: String, port: UInt16, path: String = "") {
    (self.isSecure, self.host, self.port, self.path) = (isSecure, host, port, path)
  }

  /// The value of `Host`: without the default port of the scheme, which servers with several names do not expect.
  public var authority: String {
    let host = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
  }
}

extension Kind where Value == ServerAddress {
  /// As in `OTEL_EXPORTER_OTLP_ENDPOINT`: `http://host:port` or `https://host:port`, optionally with a path.
  static var collector: Kind {
    Kind(
      name: "collector", form: "`http://host:port` or `https://host:port`, optionally with a path",
      masked: MaskedURL.server, schema: .matching("^https?://[^?#@]+$"), example: "http://127.0.0.1:4318"
    ) { text throws(InvalidSetting) in
      let address = try ServerAddress(
        url: text.hasSuffix("/") ? String(text.dropLast()) : text, without: "?#@", of: "a collector")
      guard !address.path.hasSuffix("/v1/traces"), !address.path.hasSuffix("/v1/metrics") else {
        throw InvalidSetting(
          "the gate adds /v1/traces and /v1/metrics itself",
          suggestion: "\(text.prefix(text.utf8.count - address.path.utf8.count))"
            + address.path.replacing(/\/v1\/[a-z]+$/, with: ""))
      }
      return address
    }
  }

  /// The URL of a receiver of webhooks, which may have a query.
  static var receiver: Kind {
    Kind(
      name: "receiver", form: "a URL with `https://` or `http://`", masked: MaskedURL.server,
      schema: .matching("^https?://[^#@]+$"),
      example: "https://hooks.example.com/sallyport"
    ) { text throws(InvalidSetting) in try ServerAddress(url: text, without: "#@", of: "a receiver") }
  }
}

extension ServerAddress {
  /// Reads a URL that a kind of settings has accepted; `nil` for other text.
  public init?(_ url: String) {
    do throws(InvalidSetting) { try self.init(url: url, without: "#@", of: "a server") } catch { return nil }
  }

  /// - Parameter marks: What the URL must not contain: the marks of a user, a query and a fragment.
  fileprivate init(url: String, without marks: String, of server: String) throws(InvalidSetting) {
    let parts = url.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, ["http", "https"].contains(parts[0]) else {
      throw InvalidSetting(
        "\(InvalidSetting.quoted(url)) is not a URL with http:// or https://",
        suggestion: parts.count == 1 ? "http://\(url)" : nil)
    }
    let authority = parts[1].prefix { $0 != "/" && $0 != "?" }
    guard !parts[1].contains(where: marks.contains) else {
      throw InvalidSetting(
        "the URL of \(server) cannot have a user"
          + (marks.contains("?") ? ", a query or a fragment" : " or a fragment"))
    }
    guard parts[1].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw InvalidSetting("the URL of \(server) cannot have blanks, control characters or letters beyond ASCII")
    }
    // The grammar of a host and a port is that of an upstream.
    isSecure = parts[0] == "https"
    let address = try Kind<UpstreamAddress>.upstream.read("\(isSecure ? "wss" : "ws")://\(authority)")
    (host, port) = (address.host, address.port)
    path = String(parts[1].dropFirst(authority.count))
  }
}

extension Kind where Value == Double {
  /// A share from 0 to 1.
  static var share: Kind {
    Kind(
      name: "share", form: "`0` to `1`", schema: .textOrNumber("^(0|1|0?\\.[0-9]+|1\\.0+)$"), example: "0.05"
    ) { text throws(InvalidSetting) in
      let isDecimal = text.utf8.allSatisfy {
        $0 == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
      }
      guard isDecimal, let share = Double(text), (0...1).contains(share) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a number from 0 to 1")
      }
      return share
    }
  }
}
