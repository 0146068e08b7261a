/// The reference of the configuration, as Markdown: a row for each key.
public enum ConfigurationReference {
  /// The document, with a line break at its end.
  public static var text: String {
    let rows = SettingsTable.keys.filter(\.isAvailable).map(row)
    return ([introduction, heading] + [rows.joined(separator: "\n")]).joined(separator: "\n") + "\n"
  }

  private static let introduction = """
    # Configuration reference

    Every key, made by `sallyport check --reference`.

    ## Overview

    Elements of lists are counted from 0: `routes[].upstream` of the first route is `routes[0].upstream` on the command
    line (`--set`) and `SALLYPORT_ROUTES__0__UPSTREAM` in the environment. A key whose name ends in `_file` takes a path.
    Files marked with a credential are also taken from `$CREDENTIALS_DIRECTORY`, by that name, where the key is not given.

    """

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
