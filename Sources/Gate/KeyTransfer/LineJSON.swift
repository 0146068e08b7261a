#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// One value, one line.
enum LineJSON {
  static func bytes(of value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // The lines hold texts and whole numbers, all of which JSON has.
    return ((try? encoder.encode(value)).map(Array.init) ?? []) + [UInt8(ascii: "\n")]
  }

  static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}
