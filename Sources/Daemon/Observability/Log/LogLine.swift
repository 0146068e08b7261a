internal import ByteCoding
internal import Logging

/// One log event as JSON.
struct LogLine {
  let time: Timestamp
  let level: Logger.Level
  let logger: String
  let message: String
  let metadata: Logger.Metadata

  /// The object, without a line end and without one inside it.
  var bytes: [UInt8] {
    var bytes = Self.begun(at: time, level, logger, capacity: 672)
    JSONText.appendMember("message", message, to: &bytes)
    for (name, value) in metadata.count < 2 ? Array(metadata) : metadata.sorted(by: { $0.key < $1.key }) {
      if case .stringConvertible(let fields as LogFields) = value {
        bytes += fields.json
      } else {
        appendName(of: name, to: &bytes)
        append(value, to: &bytes)
      }
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// The object of an event whose only metadata are `fields`. `message` is as in `JSONText.append(_:after:to:)`.
  static func bytes(
    time: Timestamp, level: Logger.Level, logger: String, message: StaticString, _ fields: LogFields
  ) -> [UInt8] {
    // Of the line's own members.
    var bytes = begun(at: time, level, logger, capacity: fields.json.count + 160)
    bytes.append(addingCapacity: message.utf8CodeUnitCount + fields.json.count + 14) { line in
      line.append(",\"message\":\"")
      line.append(message)
      line.append(UInt8(ascii: "\""))
      fields.json.withUnsafeBufferPointer { line.append($0) }
      line.append(UInt8(ascii: "}"))
    }
    return bytes
  }

  private static func begun(at time: Timestamp, _ level: Logger.Level, _ logger: String, capacity: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(capacity)
    bytes.append(contentsOf: #"{"time":""#.utf8)
    Timestamp(milliseconds: time.milliseconds).append(to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    JSONText.appendMember("level", level.rawValue, to: &bytes)
    JSONText.appendMember("logger", logger, to: &bytes)
    return bytes
  }

  /// Appends the name of a field of the event, changed if it equals one of the line's own names.
  private func appendName(of name: String, to bytes: inout [UInt8]) {
    begin(ReservedNames.contains(name) ? "\(ReservedNames.prefix)\(name)" : name, to: &bytes)
  }

  private func begin(_ name: String, after mark: Unicode.Scalar = ",", to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: mark))
    JSONText.append(name, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
  }

  private func append(_ value: Logger.Metadata.Value, to bytes: inout [UInt8]) {
    switch value {
    case .string(let text): JSONText.append(text, to: &bytes)
    case .stringConvertible(let value as any BinaryInteger & CustomStringConvertible): bytes += value.description.utf8
    case .stringConvertible(let value as Double) where value.isFinite: bytes += value.description.utf8
    case .stringConvertible(let value as Bool): bytes += value.description.utf8
    case .stringConvertible(let value): JSONText.append(value.description, to: &bytes)
    case .array(let values):
      bytes.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        append(value, to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .dictionary(let members):
      var mark: Unicode.Scalar = "{"
      for (name, value) in members.sorted(by: { $0.key < $1.key }) {
        begin(name, after: mark, to: &bytes)
        append(value, to: &bytes)
        mark = ","
      }
      bytes += members.isEmpty ? "{}".utf8 : "}".utf8
    }
  }
}
