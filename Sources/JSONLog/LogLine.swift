internal import ByteCoding
internal import Logging

/// One log event as JSON.
struct LogLine {
  let time: Timestamp
  let level: Logger.Level
  let logger: String
  let message: String
  let metadata: Logger.Metadata

  private static let ownNames: Set<String> = ["time", "level", "logger", "message"]

  /// The object, without a line end and without one inside it.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(512)
    append("time", Timestamp(milliseconds: time.milliseconds).description, after: "{", to: &bytes)
    append("level", level.rawValue, after: ",", to: &bytes)
    append("logger", logger, after: ",", to: &bytes)
    append("message", message, after: ",", to: &bytes)
    for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
      append(Self.ownNames.contains(name) ? "metadata." + name : name, value, after: ",", to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  private func append(_ name: String, _ text: String, after mark: Unicode.Scalar, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: mark))
    JSONText.append(name, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    JSONText.append(text, to: &bytes)
  }

  private func append(
    _ name: String, _ value: Logger.Metadata.Value, after mark: Unicode.Scalar, to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(ascii: mark))
    JSONText.append(name, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    append(value, to: &bytes)
  }

  private func append(_ value: Logger.Metadata.Value, to bytes: inout [UInt8]) {
    switch value {
    case .string(let text): JSONText.append(text, to: &bytes)
    // Asked by name first: what else is an integer costs a search through all conformances.
    case .stringConvertible(let value as Int): bytes += value.description.utf8
    case .stringConvertible(let value as UInt64): bytes += value.description.utf8
    case .stringConvertible(let value as Int64): bytes += value.description.utf8
    case .stringConvertible(let value as UInt16): bytes += value.description.utf8
    case .stringConvertible(let value as any BinaryInteger & CustomStringConvertible): bytes += value.description.utf8
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
        append(name, value, after: mark, to: &bytes)
        mark = ","
      }
      bytes += members.isEmpty ? "{}".utf8 : "}".utf8
    }
  }
}
