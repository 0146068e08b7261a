internal import Transport
internal import ByteCoding

/// Who may use the admin server.
public enum AdminAccess: Sendable {
  /// Any client that can connect: the socket's mode has already decided.
  case anyone
  /// Who shows this token (RFC 6750 section 2.1).
  case bearer(BearerToken)

  func check(_ headers: HeaderFields) throws(AdminFault) {
    guard case .bearer(let token) = self else { return }
    guard case .once(let field) = headers.only("Authorization"), token.isShown(in: field) else { throw .unauthorized }
  }
}

/// The names under which a server may be asked for.
///
/// A web page can have its own host's name lead to 127.0.0.1, and then read what is answered there as if it were its
/// own (DNS rebinding). Its requests name that host; those of who means this machine name this machine.
public enum AdminHosts: Sendable {
  /// For content that is not confidential, or where no browser comes.
  case any
  /// `localhost`, what ends with `.localhost`, and addresses of loopback, with whatever port. A request without
  /// `Host` is no browser's.
  case thisMachine

  func check(_ headers: HeaderFields) throws(AdminFault) {
    guard case .thisMachine = self, let host = headers.first("Host"), !host.isEmpty else { return }
    guard Self.isThisMachine(host) else { throw .foreignHost }
  }

  private static func isThisMachine(_ host: String) -> Bool {
    // RFC 9110 section 7.2: a name or an address, an IPv6 one in brackets, and perhaps a port.
    if host.hasPrefix("[") { return host.prefix { $0 != "]" } == "[::1" }
    let name = host.prefix { $0 != ":" }.lowercased()
    if name == "localhost" || name.hasSuffix(".localhost") { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}

/// A secret that opens the admin server.
public struct BearerToken: Sendable {
  public static let leastLength = 16
  private let bytes: [UInt8]

  /// `nil` unless `text` has at least 16 characters, all of them visible ASCII.
  public init?(_ text: String) {
    guard text.utf8.count >= Self.leastLength, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
    bytes = Array(text.utf8)
  }

  /// The field value that shows the token.
  public var field: String { "Bearer " + String(decoding: bytes, as: UTF8.self) }

  fileprivate func isShown(in field: String) -> Bool {
    let parts = field.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, HeaderFields.isSame(String(parts[0]), "Bearer") else { return false }
    return constantTimeEqual(Array(parts[1].utf8), bytes)
  }
}
