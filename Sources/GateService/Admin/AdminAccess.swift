internal import Transport
internal import ByteCoding

/// Who may use the admin server.
public enum AdminAccess: Sendable {
  /// Whoever can connect: the socket's mode has judged already.
  case anyone
  /// Who shows this token (RFC 6750 section 2.1).
  case bearer(BearerToken)

  func check(_ headers: HeaderFields) throws(AdminFault) {
    guard case .bearer(let token) = self else { return }
    guard case .once(let field) = headers.only("Authorization"), token.isShown(in: field) else { throw .unauthorized }
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
