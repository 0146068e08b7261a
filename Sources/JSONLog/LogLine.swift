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
  var text: String {
    var members = [
      member("time", Timestamp(milliseconds: time.milliseconds).description),
      member("level", level.rawValue),
      member("logger", logger),
      member("message", message),
    ]
    for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
      let name = Self.ownNames.contains(name) ? "metadata." + name : name
      members.append(JSONText.quote(name) + ":" + json(value))
    }
    return "{" + members.joined(separator: ",") + "}"
  }

  private func member(_ name: String, _ value: String) -> String { JSONText.quote(name) + ":" + JSONText.quote(value) }

  private func json(_ value: Logger.Metadata.Value) -> String {
    switch value {
    case .string(let text): JSONText.quote(text)
    case .stringConvertible(let value as any BinaryInteger & CustomStringConvertible): value.description
    case .stringConvertible(let value as Bool): value.description
    case .stringConvertible(let value): JSONText.quote(value.description)
    case .array(let values): "[" + values.map(json).joined(separator: ",") + "]"
    case .dictionary(let members):
      "{"
        + members.sorted { $0.key < $1.key }.map { JSONText.quote($0.key) + ":" + json($0.value) }
        .joined(separator: ",") + "}"
    }
  }
}
