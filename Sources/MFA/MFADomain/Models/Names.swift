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

/// The name of a device for display: at most 128 characters without control characters.
public struct DeviceModel: Sendable, Hashable {
  public let text: String

  /// - Parameter field: The client's name for the field.
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

  /// The number for display to others than its owner: the last two digits.
  public var masked: String {
    "+" + String(repeating: "*", count: text.utf8.count - 3) + text.suffix(2)
  }
}

extension String {
  var hasNoControls: Bool {
    unicodeScalars.allSatisfy { $0.properties.generalCategory != .control && $0.properties.generalCategory != .format }
  }
}
