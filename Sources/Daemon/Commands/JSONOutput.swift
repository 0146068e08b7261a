internal import ByteCoding

/// Results for programs: one JSON value a line, keys sorted, with control and format characters escaped.
public enum JSONOutput {
  /// The line of `value`, with its end.
  public static func line(_ value: some Encodable) -> String { JSONText.encoding(value) + "\n" }

  /// Writes the line of `value` to standard output.
  public static func print(_ value: some Encodable) { StandardOutput.write(line(value)) }
}
