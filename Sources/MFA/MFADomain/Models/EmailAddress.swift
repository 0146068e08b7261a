internal import Foundation

/// An e-mail address: one `@`, at most 254 bytes, and no character that could end a header or an SMTP command.
public struct EmailAddress: Sendable, Hashable {
  public let text: String

  /// An address that a client gives: a mailbox in a domain of at least two labels, in the form that needs no quotes
  /// (RFC 5321, section 4.1.2: a dot-string, and labels of letters, digits and inner hyphens). Names of one label and
  /// address literals are refused, since they lead to the backend's own network.
  public init(_ text: String) throws(InvalidValue) {
    try self.init(trusted: text)
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    guard Self.isDotString(parts[0]), Self.isDomain(parts[1]) else {
      throw InvalidValue(field: "email", rule: "is name@domain, as user@example.com")
    }
  }

  /// Parses a stored address, or one from the operator, such as `noreply@localhost`.
  public init(trusted text: String) throws(InvalidValue) {
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !#"<>(),;:\""#.utf8.contains($0) }
    guard text.utf8.count <= 254, isPlain, parts.count == 2, (1...64).contains(parts[0].count), !parts[1].isEmpty else {
      throw InvalidValue(field: "email", rule: "is name@domain in at most 254 ASCII characters")
    }
    self.text = text
  }

  /// Whether `name` is atoms with single dots between them.
  private static func isDotString(_ name: Substring) -> Bool {
    name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { atom in
      !atom.isEmpty && atom.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-/=?^_`{|}~".utf8.contains($0) }
    }
  }

  private static func isDomain(_ domain: Substring) -> Bool {
    let labels = domain.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    // No top-level domain is a number: that would be an address.
    guard labels.count >= 2, labels.last?.allSatisfy({ (0x30...0x39).contains($0) }) == false else { return false }
    return labels.allSatisfy { label in
      (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
        && label.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
  }

  /// The key for counting: mailboxes whose names differ only in case are one in practice (RFC 5321, section 2.4).
  var key: String { text.lowercased() }

  /// The address for display: the first character of the name, and the domain.
  public var masked: String {
    let parts = text.split(separator: "@")
    return parts[0].prefix(1) + "***@" + parts[1]
  }
}
