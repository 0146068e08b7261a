internal import Foundation

/// Names and addresses of this machine.
package enum LoopbackHost {
  /// Whether data sent to `host` stays on this machine.
  package static func contains(_ host: String) -> Bool { EndpointRules.isLoopback(host) }
}

/// The rules for URLs of a provider and of its client.
enum EndpointRules {
  enum Use {
    /// Requests with codes, tokens or credentials go there (RFC 6749, section 3).
    case endpoint
    /// The identity of the provider (OpenID Connect Core 1.0, section 2).
    case issuer
    /// The browser returns there with a code (RFC 8252, section 7).
    case redirect
  }

  static let absolute = "must be an absolute URL, such as https://login.example.com"

  /// The URL that `text` is, character by character; `nil` if it is none.
  ///
  /// Foundation percent-encodes characters that a URL cannot contain. An issuer is compared as text, so it must not
  /// change.
  static func url(_ text: String) -> URL? {
    URL(string: text).flatMap { $0.absoluteString == text ? $0 : nil }
  }

  /// The rules that `url` breaks.
  static func problems(_ url: URL, _ use: Use) -> [String] {
    guard url.baseURL == nil, let scheme = url.scheme?.lowercased() else { return [absolute] }
    var problems: [String] = []
    switch (scheme, use) {
    case ("https", _), ("http", _):
      guard let host = url.host, !host.isEmpty else { return [absolute] }
      if scheme == "http", !isLoopback(host) {
        problems.append("must be https, or http on loopback: codes and tokens are sent there")
      }
      if let port = url.port, !(1...65535).contains(port) { problems.append("must have a port from 1 to 65535") }
    case (_, .redirect) where scheme.contains("."): break
    case (_, .redirect):
      problems.append(
        "must be http on loopback, https, or a private scheme with a period, such as com.example.app:/callback")
    default: problems.append("must be https, or http on loopback")
    }
    if url.user != nil || url.password != nil { problems.append("must not contain a user or a password") }
    if url.fragment != nil { problems.append("must not contain a fragment") }
    if use == .issuer, url.query != nil { problems.append("must not contain a query") }
    return problems
  }

  /// Whether data sent to `host` stays on this machine: `localhost`, `127.0.0.0/8` in the usual notation, or `::1`.
  static func isLoopback(_ host: String) -> Bool {
    let host = host.lowercased()
    if ["localhost", "::1", "[::1]"].contains(host) { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127"
      && parts.allSatisfy { part in UInt8(part).map { String($0) == part } == true }
  }
}
