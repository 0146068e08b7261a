internal import ByteCoding

/// Results for programs: one JSON value a line, keys sorted, with control and format characters escaped.
enum JSONOutput {
  static func line(_ value: some Encodable) -> String { JSONText.encoding(value) + "\n" }

  static func print(_ value: some Encodable) { StandardOutput.write(line(value)) }
}
