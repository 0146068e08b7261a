internal import ByteCoding

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Encodes and decodes one JSON value per line.
enum LineJSON {
  static func bytes(of value: some Encodable) -> [UInt8] { Array((JSONText.encoding(value) + "\n").utf8) }

  static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}
