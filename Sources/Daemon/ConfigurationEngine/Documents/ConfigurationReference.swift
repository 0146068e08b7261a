/// The table of the configuration reference in Markdown, with a row for each key.
enum ConfigurationReference {
  /// The table, with a trailing newline.
  static func table(of table: SettingsTable) -> String {
    ([heading] + table.keys.map(row)).joined(separator: "\n") + "\n"
  }

  private static let heading = """
    | key | type | values | default | example | meaning |
    |---|---|---|---|---|---|
    """

  private static func row(_ key: KeyDefinition) -> String {
    let meaning = key.meaning + (key.credential.map { " Credential: `\($0)`." } ?? "")
    let cells = [code(key.pattern), key.kind, key.form, code(key.standard), code(key.example), meaning]
    return "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
  }

  private static func code(_ text: String?) -> String { text.map { "`\($0)`" } ?? "" }
}
