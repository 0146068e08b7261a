internal import Foundation

/// An e-mail address: one `@`, at most 254 bytes, and no character that could end a header or an SMTP command. It may
/// have letters of all scripts (RFC 6531), in NFC.
public struct EmailAddress: Sendable, Hashable {
  public let text: String

  /// An address that a client gives: a mailbox in a domain of at least two labels, in the form that needs no quotes
  /// (RFC 5321, section 4.1.2: a dot-string, and labels of letters, digits and inner hyphens). White space around it is
  /// left out. Names of one label and address literals are refused, since they lead to the backend's own network.
  public init(_ text: String) throws(InvalidValue) {
    try self.init(trusted: text.utf8.count <= 1024 ? text.withoutOuterSpace : text)
    let parts = Self.parts(of: self.text)
    guard Self.isDotString(parts.name), Self.isDomain(parts.domain) else {
      throw InvalidValue(field: "email", rule: "is name@domain, as user@example.com")
    }
  }

  /// Parses a stored address, or one from the operator, such as `noreply@localhost`.
  public init(trusted text: String) throws(InvalidValue) {
    let text = text.utf8.count <= 1024 ? text.precomposedStringWithCanonicalMapping : text
    let parts = text.utf8.prefix(255).split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard text.utf8.count <= 254, parts.count == 2, (1...64).contains(parts[0].count), !parts[1].isEmpty,
      text.unicodeScalars.allSatisfy(Self.isPlain)
    else {
      throw InvalidValue(field: "email", rule: "is name@domain in at most 254 bytes, without spaces and marks")
    }
    self.text = text
  }

  /// Whether only mail servers with SMTPUTF8 (RFC 6531) carry mail to it.
  public var needsUTF8: Bool { !text.utf8.allSatisfy { $0 < 0x80 } }

  /// The part after the `@`.
  public var domain: String { String(Self.parts(of: text).domain) }

  /// The parts before and after the `@`, which is found by its byte: with a mark after it, or with some letters of
  /// Indian scripts before it, it is not a `Character` of its own.
  private static func parts(of text: String) -> (name: Substring, domain: Substring) {
    let sign = text.utf8.firstIndex(of: UInt8(ascii: "@")) ?? text.endIndex
    return (text[..<sign], Substring(text.utf8[sign...].dropFirst()))
  }

  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return (0x21...0x7E).contains(scalar.value) && !#"<>(),;:\""#.unicodeScalars.contains(scalar) }
    return isLetterOrMark(scalar)
  }

  /// Whether a scalar beyond ASCII is a letter, a mark or a digit that shows.
  private static func isLetterOrMark(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
      .spacingMark, .decimalNumber:
      scalar.isVisible
    default: false
    }
  }

  /// Whether a part begins with a mark, which would combine with the `@` or the dot before it (RFC 5891, section
  /// 4.2.3.2, for domains).
  private static func beginsWithMark(_ part: Substring.UTF8View) -> Bool {
    guard let properties = Substring(part).unicodeScalars.first?.properties else { return false }
    switch properties.generalCategory {
    case .nonspacingMark, .spacingMark: return true
    // Two letters of Japanese are marks in this respect.
    default: return properties.isGraphemeExtend
    }
  }

  /// Whether `name` is atoms with single dots between them.
  private static func isDotString(_ name: Substring) -> Bool {
    name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { atom in
      !atom.isEmpty && !beginsWithMark(atom)
        && atom.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-/=?^_`{|}~".utf8.contains($0) }
    }
  }

  private static func isDomain(_ domain: Substring) -> Bool {
    let labels = domain.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    // No top-level domain is a number: that would be an address.
    guard labels.count >= 2, labels.last?.allSatisfy({ (0x30...0x39).contains($0) }) == false else { return false }
    return labels.allSatisfy { label in
      (1...63).contains(label.count) && !beginsWithMark(label) && label.first != UInt8(ascii: "-")
        && label.last != UInt8(ascii: "-")
        && label.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    // Bytes of other letters, which `init(trusted:)` has looked at.
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...0xFF: true
    default: false
    }
  }

  /// The key for counting: mailboxes whose names differ only in case are one in practice (RFC 5321, section 2.4).
  var key: String { text.lowercased() }

  /// The mailbox that the address reaches, as far as it can be told: for a limit alone, since another server may have
  /// another mailbox for each of these names.
  ///
  /// A suffix after `+` is left out, as most servers do ("subaddress", RFC 5233), and the dots in the name at Gmail,
  /// which has two domains. Case is ignored.
  var mailbox: String {
    let parts = Self.parts(of: key)
    let isGmail = parts.domain == "gmail.com" || parts.domain == "googlemail.com"
    var name = parts.name
    // A name that begins with the sign has no other part. The byte is looked for, since a mark after the sign would
    // otherwise give each suffix a mailbox of its own.
    if let sign = name.utf8.dropFirst().firstIndex(of: UInt8(ascii: "+")) { name = name[..<sign] }
    guard isGmail else { return "\(name)@\(parts.domain)" }
    return String(decoding: name.utf8.filter { $0 != UInt8(ascii: ".") }, as: UTF8.self) + "@gmail.com"
  }

  /// The address for display: the first character of the name, and the domain.
  public var masked: String {
    let parts = Self.parts(of: text)
    return parts.name.prefix(1) + "***@" + parts.domain
  }
}
