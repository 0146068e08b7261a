internal import Transport
internal import ByteCoding

/// The authentication of the admin server.
public enum AdminAccess: Sendable {
  /// No token: every client that can connect has access. The mode of a Unix socket limits these clients.
  case anyone
  /// Requests must carry this token (RFC 6750 section 2.1).
  case bearer(BearerToken)

  func check(_ headers: HeaderFields) throws(AdminError) {
    guard case .bearer(let token) = self else { return }
    guard case .once(let field) = headers.only("Authorization"), token.isShown(in: field) else { throw .unauthorized }
  }
}

/// The host names that requests may use for a server.
///
/// A web page can make its own host name resolve to 127.0.0.1 and then read the answers of a local server (DNS
/// rebinding). Its requests still carry that host name, while requests of a local user name the local machine.
public enum AdminHosts: Sendable {
  /// Any name: the server has nothing to hide, or no browser can reach it.
  case any
  /// `localhost`, names that end in `.localhost`, and loopback addresses, with any port. A request without `Host` is
  /// accepted, since browsers always send one.
  case thisMachine

  func check(_ headers: HeaderFields) throws(AdminError) {
    guard case .thisMachine = self, let host = headers.first("Host"), !host.isEmpty else { return }
    guard Self.isThisMachine(host) else { throw .foreignHost }
  }

  private static func isThisMachine(_ host: String) -> Bool {
    // RFC 9110 section 7.2: a name or an address, with brackets around an IPv6 address, and an optional port.
    if host.hasPrefix("[") { return host.prefix { $0 != "]" } == "[::1" }
    let name = host.prefix { $0 != ":" }.lowercased()
    if name == "localhost" || name.hasSuffix(".localhost") { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}

/// The secret token of the admin server.
public struct BearerToken: Sendable {
  /// The minimum length in characters.
  public static let leastLength = 16
  private let bytes: [UInt8]

  /// Returns `nil` unless `text` has at least 16 characters, all of them visible ASCII.
  public init?(_ text: String) {
    guard text.utf8.count >= Self.leastLength, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
    bytes = Array(text.utf8)
  }

  /// The value of `Authorization` with this token.
  public var field: String { "Bearer " + String(decoding: bytes, as: UTF8.self) }

  fileprivate func isShown(in field: String) -> Bool {
    let parts = Array(field.utf8).split(separator: UInt8(ascii: " "), maxSplits: 1)
    guard parts.count == 2, HeaderFields.isSame(String(decoding: parts[0], as: UTF8.self), "Bearer") else {
      return false
    }
    return constantTimeEqual(Array(parts[1]), bytes)
  }
}
