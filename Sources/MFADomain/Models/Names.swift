internal import Foundation

/// Why a value that a client sent is not one: which field, and the rule that it breaks.
public struct InvalidValue: Error, Sendable, Hashable {
  public let field: String
  public let rule: String

  public init(field: String, rule: String) {
    self.field = field
    self.rule = rule
  }
}

/// The name of an account: 1 to 128 characters, none of them a control character, and no white space at the ends.
///
/// Names that differ in case or in Unicode composition alone are one name: in any script, and by the full mappings, so
/// that `ß` and `SS`, or a sigma in the middle and one at the end, are alike too.
public struct Username: Sendable, Hashable {
  /// As the client wrote it.
  public let text: String
  /// What is compared and stored: composed (NFC), in upper and from there in lower case, and composed again, since the
  /// lower case of composed text need not be (`J̌` has no character of its own, `ǰ` has).
  public let key: String

  public init(_ text: String) throws(InvalidValue) {
    guard (1...128).contains(text.count), text.utf8.count <= 512 else {
      throw InvalidValue(field: "username", rule: "has 1 to 128 characters")
    }
    guard text.hasNoControls, text.trimmingCharacters(in: .whitespacesAndNewlines) == text else {
      throw InvalidValue(field: "username", rule: "has no control characters, and no white space at its ends")
    }
    self.text = text
    let composed = text.precomposedStringWithCanonicalMapping
    // The capital ẞ has itself for upper case, and the small one SS: they meet by lower case first.
    key = composed.lowercased().uppercased().lowercased().precomposedStringWithCanonicalMapping
  }

  public static func == (first: Username, second: Username) -> Bool { first.key == second.key }
  public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

/// What a client calls its device: 1 to 128 printable ASCII characters without spaces. Unique among all accounts.
public struct DeviceID: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw InvalidValue(field: "deviceId", rule: "has 1 to 128 printable ASCII characters and no spaces")
    }
    self.text = text
  }
}

/// What a person reads about a device: at most 128 characters without control characters.
public struct DeviceModel: Sendable, Hashable {
  public let text: String

  /// - Parameter field: what the client calls it.
  public init(_ text: String, field: String = "deviceModel") throws(InvalidValue) {
    guard text.count <= 128, text.utf8.count <= 512, text.hasNoControls else {
      throw InvalidValue(field: field, rule: "has at most 128 characters and no control characters")
    }
    self.text = text
  }
}

/// A telephone number as E.164 writes it: `+` and 8 to 15 digits, the first of them not 0.
public struct PhoneNumber: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    let digits = text.utf8.dropFirst()
    guard text.utf8.first == UInt8(ascii: "+"), (8...15).contains(digits.count),
      digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != 0x30
    else {
      throw InvalidValue(field: "phoneNumber", rule: "is + and 8 to 15 digits (E.164)")
    }
    self.text = text
  }

  /// What others than the owner see: the last two digits.
  public var masked: String {
    "+" + String(repeating: "*", count: text.utf8.count - 3) + text.suffix(2)
  }
}

/// An address for e-mail: one `@`, at most 254 bytes, nothing that could end a header or an SMTP command.
public struct EmailAddress: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !#"<>(),;:\""#.utf8.contains($0) }
    guard text.utf8.count <= 254, isPlain, parts.count == 2, (1...64).contains(parts[0].count), !parts[1].isEmpty else {
      throw InvalidValue(field: "email", rule: "is name@domain in at most 254 ASCII characters")
    }
    self.text = text
  }

  /// What is counted: mailboxes whose names differ in case alone are one in practice (RFC 5321, section 2.4).
  var key: String { text.lowercased() }

  /// What may be shown on a screen: the first character of the name, and the domain.
  public var masked: String {
    let parts = text.split(separator: "@")
    return parts[0].prefix(1) + "***@" + parts[1]
  }
}

extension String {
  fileprivate var hasNoControls: Bool {
    unicodeScalars.allSatisfy { $0.properties.generalCategory != .control && $0.properties.generalCategory != .format }
  }
}
