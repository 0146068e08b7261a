#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension JSONText {
  /// Encodes a value as all programs here print it: with sorted keys, and with control and format characters escaped,
  /// so that the text cannot steer a terminal.
  ///
  /// - Parameters:
  ///   - value: Strings, numbers, booleans, arrays and objects of them. Anything that JSON cannot represent, such as an
  ///     infinite number, becomes `null`.
  ///   - isPretty: Whether the text has line breaks and indentation. Otherwise it is one line.
  public static func encoding(_ value: some Encodable, isPretty: Bool = false) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
    guard let data = try? encoder.encode(value) else { return "null" }
    return TerminalText.escaped(json: String(decoding: data, as: UTF8.self))
  }
}
