public import Logging

/// What a line says behind its message, in the order in which it stands there.
///
/// The lines of requests and sessions are made of these and not of swift-log's dictionaries, which cost several times
/// as much to fill, to hash and to sort. A handler that does not know the type sees one metadata value, `fields`,
/// with `description` for its text.
public struct LogFields: Sendable, CustomStringConvertible {
  enum Value: Sendable {
    case text(String)
    case integer(Int64)
    case flag(Bool)
  }

  private(set) var members: [(name: String, value: Value)] = []

  public init() { members.reserveCapacity(14) }

  /// Adds a text; none for `nil`.
  public mutating func append(_ name: String, _ text: String?) {
    if let text { members.append((name, .text(text))) }
  }

  /// Adds a number; none for `nil`.
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
