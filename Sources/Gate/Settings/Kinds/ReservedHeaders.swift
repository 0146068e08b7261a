/// The header fields of clients that no configuration lets through to an upstream.
enum ReservedHeaders {
  /// Those that the gate sets, those with which clients prove who they are, and those of one connection.
  private static let names: Set = [
    "client-cert", "client-cert-chain", "connection", "content-length", "expect", "forwarded", "host", "http2-settings",
    "keep-alive", "proxy", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "traceparent",
    "tracestate", "trailer", "transfer-encoding", "upgrade", "x-request-id",
  ]
  private static let prefixes = ["x-attest-", "x-app-assert-", "x-forwarded"]

  /// Those without which a request to an upstream is not valid (RFC 9112 section 3.2, RFC 6455 section 4.1).
  private static let requiredNames: Set = ["host", "sec-websocket-key", "sec-websocket-version"]

  /// Whether a request to an upstream needs the field `name`.
  static func requires(_ name: String) -> Bool { requiredNames.contains(name.lowercased()) }

  static func contains(_ name: String) -> Bool {
    let name = name.lowercased()
    return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
  }
}
