internal import ByteCoding
public import Transport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// JSON in the form that the admin server and the commands write: sorted keys, one line, control and format
/// characters escaped.
public enum AdminJSON {
  /// Returns `value` as JSON text.
  public static func text(of value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // The described values are strings, integers, booleans and lists of them, which JSON can always represent.
    return (try? encoder.encode(value)).map { TerminalText.escaped(json: String(decoding: $0, as: UTF8.self)) }
      ?? "null"
  }

  /// Decodes a value from `bytes`; `nil` if they do not contain one of this type.
  public static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}

extension Response {
  /// Creates an answer of the admin server in JSON.
  public static func json(_ value: some Encodable, status: Int = 200) -> Response {
    .admin(status: status, "application/json", AdminJSON.text(of: value) + "\n")
  }

  /// Creates an answer of the admin server in another format.
  public static func text(_ body: String, status: Int = 200, type: String = "text/plain; charset=utf-8") -> Response {
    .admin(status: status, type, body)
  }
}
