internal import ByteCoding
public import Transport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Reads the JSON of the admin server.
public enum AdminJSON {
  /// Decodes a value from `bytes`; `nil` if they do not contain one of this type.
  public static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}

extension Response {
  /// Creates an answer of the admin server in JSON.
  public static func json(_ value: some Encodable, status: Int = 200) -> Response {
    .admin(status: status, "application/json", JSONText.encoding(value) + "\n")
  }

  /// Creates an answer of the admin server in another format.
  public static func text(_ body: String, status: Int = 200, type: String = "text/plain; charset=utf-8") -> Response {
    .admin(status: status, type, body)
  }
}
