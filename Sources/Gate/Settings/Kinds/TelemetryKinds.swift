internal import ConfigurationEngine

/// The endpoint of a collector for OpenTelemetry's protocol over HTTP.
public struct CollectorAddress: Sendable, Hashable {
  public let isSecure: Bool
  /// A host name, or an address without brackets.
  public let host: String
  public let port: UInt16
  /// The part before `/v1/traces` and `/v1/metrics`: empty, or with a slash at its begin and none at its end.
  public let path: String

  /// The value of `Host`: without the default port of the scheme, which servers with several names do not expect.
  public var authority: String {
    let host = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
  }
}

extension Kind where Value == CollectorAddress {
  /// As in `OTEL_EXPORTER_OTLP_ENDPOINT`: `http://host:port` or `https://host:port`, optionally with a path.
  static var collector: Kind {
    Kind(
      name: "collector", form: "`http://host:port` or `https://host:port`, optionally with a path",
      schema: .matching("^https?://[^?#@]+$"), example: "http://127.0.0.1:4318"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, ["http", "https"].contains(parts[0]) else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not a URL with http:// or https://",
          suggestion: parts.count == 1 ? "http://\(text)" : nil)
      }
      let authority = parts[1].prefix { $0 != "/" }
      guard !parts[1].contains(where: { "?#@".contains($0) }) else {
        throw InvalidSetting("the URL of a collector cannot have a user, a query or a fragment")
      }
      guard parts[1].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        throw InvalidSetting("the URL of a collector cannot have blanks, control characters or letters beyond ASCII")
      }
      let path = parts[1].dropFirst(authority.count)
      guard !path.hasSuffix("/v1/traces"), !path.hasSuffix("/v1/metrics") else {
        throw InvalidSetting(
          "the gate adds /v1/traces and /v1/metrics itself",
          suggestion: "\(parts[0])://\(authority)\(path.replacing(/\/v1\/[a-z]+$/, with: ""))")
      }
      // The grammar of a host and a port is that of an upstream.
      let isSecure = parts[0] == "https"
      let address = try Kind<UpstreamAddress>.upstream.read("\(isSecure ? "wss" : "ws")://\(authority)")
      return CollectorAddress(
        isSecure: isSecure, host: address.host, port: address.port,
        path: String(path.hasSuffix("/") ? path.dropLast() : path))
    }
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
