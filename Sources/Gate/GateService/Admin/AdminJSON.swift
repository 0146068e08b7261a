internal import ByteCoding
public import Transport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// JSON as the admin server and the commands write it: keys sorted, on one line, control and format characters escaped.
public enum AdminJSON {
  public static func text(of value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // What is described here are texts, whole numbers, truths and lists of them, all of which JSON has.
    return (try? encoder.encode(value)).map { TerminalText.escaped(json: String(decoding: $0, as: UTF8.self)) }
      ?? "null"
  }

  /// The value that `bytes` hold; `nil` if they hold another one.
  public static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}

extension Response {
  /// An answer of the admin server in JSON.
  public static func json(_ value: some Encodable, status: Int = 200) -> Response {
    .admin(status: status, "application/json", AdminJSON.text(of: value) + "\n")
  }

  /// An answer of the admin server in another form.
  public static func text(_ body: String, status: Int = 200, type: String = "text/plain; charset=utf-8") -> Response {
    .admin(status: status, type, body)
  }
}
