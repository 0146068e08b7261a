internal import ByteCoding
internal import Foundation

/// Results for programs: one JSON value a line, keys sorted, with control and format characters escaped.
enum JSONOutput {
  static func line(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // The results hold texts, whole numbers, truths and lists of them, all of which JSON has.
    guard let data = try? encoder.encode(value) else { return "null\n" }
    return TerminalText.escaped(json: String(decoding: data, as: UTF8.self)) + "\n"
  }

  static func print(_ value: some Encodable) { StandardOutput.write(line(value)) }
}
