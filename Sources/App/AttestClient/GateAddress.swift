package import Foundation

/// Where a gate's registration endpoints are.
package struct GateAddress: Sendable, Hashable {
  /// `GET`: a fresh nonce.
  let challenge: URL
  /// `POST`: registers a key.
  let register: URL
  /// `POST`: issues an access token.
  let token: URL
  /// The `https` URL before the paths of the endpoints. Its path is empty, or begins with a slash and ends with none.
  private let base: URLComponents

  /// Parses the URL of a gate: `https`, or `wss` for the URL of a socket. Plaintext schemes are refused.
  ///
  /// An `https` URL may have a path, which is put before the paths of the endpoints. The path of a `wss` URL is that
  /// of the socket. Returns `nil` for other schemes, and for a URL without host or with user, query (in `https`) or
  /// fragment.
  package init?(_ url: URL) {
    guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let host = parts.host, !host.isEmpty,
      parts.user == nil, parts.password == nil, parts.fragment == nil
    else { return nil }
    switch parts.scheme?.lowercased() {
    case "https":
      guard parts.query == nil else { return nil }
    case "wss":
      parts.scheme = "https"
      parts.path = ""
      parts.query = nil
    default: return nil
    }
    while parts.path.hasSuffix("/") { parts.path.removeLast() }
    let prefix = parts.path
    func endpoint(_ path: String) -> URL? {
      var parts = parts
      parts.path = prefix + path
      return parts.url
    }
    guard let challenge = endpoint("/attest/challenge"), let register = endpoint("/attest/register"),
      let token = endpoint("/attest/token")
    else { return nil }
    self.challenge = challenge
    self.register = register
    self.token = token
    base = parts
  }

  /// The URL of a service behind the gate.
  ///
  /// - Parameters:
  ///   - scheme: `https`, or `wss` for a socket.
  ///   - path: Begins with a slash, as the paths of the endpoints do.
  package func url(_ scheme: String, _ path: String) -> URL {
    var parts = base
    parts.scheme = scheme
    parts.path += path
    guard let url = parts.url else { preconditionFailure("\(path) does not begin with a slash") }
    return url
  }

  /// Whether `url` has the scheme, host and port of the gate.
  func serves(_ url: URL) -> Bool { url.scheme?.lowercased() == "https" && isOfGate(url) }

  /// Whether `url` is a `wss` URL with the host and port of the gate.
  package func serves(socket url: URL) -> Bool { url.scheme?.lowercased() == "wss" && isOfGate(url) }

  private func isOfGate(_ url: URL) -> Bool {
    guard url.user == nil, url.password == nil else { return false }
    return Self.authority(of: url) == Self.authority(of: challenge)
  }

  private static func authority(of url: URL) -> [String?] { [url.host?.lowercased(), String(url.port ?? 443)] }
}
