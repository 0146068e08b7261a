public import Logging

/// The fields of a log line after its message, in order.
///
/// Lines of requests and sessions use this type instead of swift-log's dictionaries, which cost several times as much
/// to fill, hash and sort. A handler that does not know the type gets one metadata value, `fields`, with
/// `description` as its text.
public struct LogFields: Sendable, CustomStringConvertible {
  enum Value: Sendable {
    case text(String)
    case integer(Int64)
    case flag(Bool)
  }

  private(set) var members: [(name: String, value: Value)] = []

  public init() { members.reserveCapacity(14) }

  /// Adds a text; does nothing for `nil`.
  public mutating func append(_ name: String, _ text: String?) {
    if let text { members.append((name, .text(text))) }
  }

  /// Adds a number; does nothing for `nil`.
  public mutating func append(_ name: String, _ number: (some BinaryInteger)?) {
    if let number { members.append((name, .integer(Int64(clamping: number)))) }
  }

  public mutating func append(_ name: String, _ flag: Bool) { members.append((name, .flag(flag))) }

  /// The members with their values as text.
  var texts: [(name: String, text: String)] {
    members.map { name, value in
      switch value {
      case .text(let text): (name, text)
      case .integer(let number): (name, "\(number)")
      case .flag(let flag): (name, "\(flag)")
      }
    }
  }

  /// `name=value`, separated by spaces.
  public var description: String { texts.map { "\($0)=\($1)" }.joined(separator: " ") }
}

extension Logger {
  public func log(level: Level, _ message: @autoclosure () -> Message, _ fields: @autoclosure () -> LogFields) {
    log(level: level, message(), metadata: ["fields": .stringConvertible(fields())])
  }
}
