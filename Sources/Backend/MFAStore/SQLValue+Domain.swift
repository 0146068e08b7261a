internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLValue {
  static func integer(_ value: Int) -> SQLValue { .integer(Int64(value)) }
  static func truth(_ value: Bool) -> SQLValue { .integer(value ? 1 as Int64 : 0) }
  static func time(_ value: Timestamp) -> SQLValue { .integer(value.milliseconds) }
  static func time(_ value: Timestamp?) -> SQLValue { value.map { .time($0) } ?? .null }
  static func uuid(_ value: UUID) -> SQLValue { .text(value.text) }
  static func text(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
  static func blob(_ value: [UInt8]?) -> SQLValue { value.map { .blob($0) } ?? .null }

  static func binding(_ value: Binding) -> SQLValue {
    switch value {
    case .attestedKey(let hash): .text("key:" + hash)
    case .debugBuild: .text("debug")
    }
  }
}

extension SQLRow {
  func int(_ column: String) throws -> Int { Int(try integer(column)) }
  func truth(_ column: String) throws -> Bool { try integer(column) != 0 }
  func time(_ column: String) throws -> Timestamp { Timestamp(milliseconds: try integer(column)) }

  func uuid(_ column: String) throws -> UUID {
    guard let value = UUID(text: try text(column)) else { throw Unreadable(column: column) }
    return value
  }

  func binding(_ column: String) throws -> Binding {
    let text = try text(column)
    if text == "debug" { return .debugBuild }
    guard text.hasPrefix("key:") else { throw Unreadable(column: column) }
    return .attestedKey(String(text.dropFirst(4)))
  }

  /// A value of a domain enum.
  func word<Value: RawRepresentable<String>>(_ column: String, as: Value.Type = Value.self) throws -> Value {
    guard let value = Value(rawValue: try text(column)) else { throw Unreadable(column: column) }
    return value
  }
}
