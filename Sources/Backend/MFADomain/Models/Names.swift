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

/// The client's identifier of its device: 1 to 128 printable ASCII characters without spaces, unique among all
/// accounts.
public struct DeviceID: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw InvalidValue(field: "deviceId", rule: "has 1 to 128 printable ASCII characters and no spaces")
    }
    self.text = text
  }
}

/// The name of a device for display: at most 128 characters, none of them invisible or a separator of lines. An emoji
/// may have its variation selector.
public struct DeviceModel: Sendable, Hashable {
  public let text: String

  /// - Parameter field: The client's name for the field.
  public init(_ text: String, field: String = "deviceModel") throws(InvalidValue) {
    guard text.utf8.count <= 512, text.count <= 128, Self.isVisible(text) else {
      throw InvalidValue(field: field, rule: "has at most 128 characters and no control or invisible characters")
    }
    self.text = text
  }

  /// The name as a store kept it. An older version accepted more characters.
  public init(kept text: String) { self.text = text }

  private static func isVisible(_ text: String) -> Bool {
    var isAfterEmoji = false
    return text.unicodeScalars.allSatisfy { scalar in
      defer { isAfterEmoji = scalar.properties.isEmoji }
      return scalar.isVisible || (isAfterEmoji && scalar.value == 0xFE0F)
    }
  }
}

/// A telephone number as E.164 writes it: `+` and at most 15 digits, the first of them not 0. E.164 has no least length;
/// numbers of Niue and Tokelau have seven digits.
public struct PhoneNumber: Sendable, Hashable {
  public let text: String

  /// - Parameter text: The number, which may have white space around it.
  public init(_ text: String) throws(InvalidValue) {
    let text = text.withoutOuterSpace
    let digits = text.utf8.dropFirst()
    guard text.utf8.first == UInt8(ascii: "+"), (4...15).contains(digits.count),
      digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != 0x30
    else {
      throw InvalidValue(field: "phoneNumber", rule: "is + and 4 to 15 digits (E.164)")
    }
    self.text = text
  }

  /// The number for display to others than its owner: the last two digits.
  public var masked: String {
    "+" + String(repeating: "*", count: text.utf8.count - 3) + text.suffix(2)
  }
}

extension Unicode.Scalar {
  /// Whether it shows in a line of text: it is no control or format character, separates no lines or paragraphs, has a
  /// meaning for every reader, and is not ignored where it has no glyph (`Default_Ignorable_Code_Point`: variation
  /// selectors, tags, joiners, fillers).
  ///
  /// Code points that are not assigned yet count as visible, as far as they are not reserved to be ignored.
  public var isVisible: Bool {
    if isASCII { return value >= 0x20 && value != 0x7F }
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate: return false
    default: return !properties.isDefaultIgnorableCodePoint && !properties.isNoncharacterCodePoint
    }
  }
}

extension String {
  /// Without white space at both ends, as keyboards and clipboards add it.
  var withoutOuterSpace: String { trimmingCharacters(in: .whitespacesAndNewlines) }

  var hasNoControls: Bool {
    unicodeScalars.allSatisfy { $0.properties.generalCategory != .control && $0.properties.generalCategory != .format }
  }
}
