internal import Commands
internal import Foundation
internal import Glibc

/// The address of a socket at a gate: `wss://host:port/path?query`, or the same with `https`.
struct GateURL: Sendable, Hashable {
  /// Of the scheme `wss` in either case: the path of an `https` URL would be a prefix of the gate's own endpoints.
  let url: URL
  /// Without brackets.
  let host: String
  let port: UInt16
  /// Path and query of the upgrade request.
  let target: String

  init(_ text: String) throws(Failure) {
    let shown = Self.withoutUser(text)
    // `URLComponents` would take a blank, and send another one.
    let isVisible = text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    guard isVisible, var parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
      throw Failure(.usage, "not a URL: \(shown)", hint: Self.hint)
    }
    guard scheme == "wss" || scheme == "https" else {
      let isPlain = scheme == "ws" || scheme == "http"
      throw Failure(
        .usage, isPlain ? "a gate is never spoken to without TLS: \(shown)" : "not the address of a gate: \(shown)",
        hint: Self.hint)
    }
    guard let host = parts.host.map(Self.withoutBrackets), Self.isHost(host), parts.user == nil, parts.password == nil,
      parts.fragment == nil, let port = UInt16(exactly: parts.port ?? 443), port > 0
    else {
      throw Failure(.usage, "not the address of a gate: \(shown)", hint: Self.hint)
    }
    parts.scheme = "wss"
    guard let url = parts.url else { throw Failure(.usage, "not a URL: \(shown)", hint: Self.hint) }
    self.url = url
    self.host = host
    self.port = port
    let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
    target = path + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
  }

  private static let hint = "an address is like wss://localhost:6200/"

  /// Returns `text` without a possible user and password: the part between the scheme and the last `@`.
  private static func withoutUser(_ text: String) -> String {
    let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
    guard let end = text.lastIndex(of: "@"), start <= end else { return text }
    return text[..<start] + "…" + text[end...]
  }

  /// Whether the host is this machine by its name or address: `localhost`, 127.0.0.0/8 or `::1`.
  var isLoopback: Bool {
    var ipv4 = in_addr()
    var ipv6 = in6_addr()
    if inet_pton(AF_INET, host, &ipv4) == 1 { return UInt32(bigEndian: ipv4.s_addr) >> 24 == 127 }
    if inet_pton(AF_INET6, host, &ipv6) == 1 {
      return withUnsafeBytes(of: &ipv6) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }
    return host.lowercased() == "localhost"
  }

  /// The value of the `Host` field.
  var hostField: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// The gate's host and port without a path. Registrations belong to it.
  var gateName: String { "\(host):\(port)" }

  private static func withoutBrackets(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  /// Letters, digits, dots and dashes, or an IPv6 address.
  private static func isHost(_ host: String) -> Bool {
    if host.contains(":") {
      var address = in6_addr()
      return inet_pton(AF_INET6, host, &address) == 1
    }
    return !host.isEmpty
      && host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}
