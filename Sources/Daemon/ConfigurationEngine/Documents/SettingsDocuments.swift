/// The documents that follow from a table of settings.
public struct SettingsDocuments: Sendable {
  let table: SettingsTable
  let referenceIntroduction: String
  let exampleIntroduction: String
  let shownLists: Set<String>
  let shownKeys: Set<String>
  let entryNames: [String: String]

  /// - Parameters:
  ///   - referenceIntroduction: What stands above the table of the reference, in Markdown.
  ///   - exampleIntroduction: What stands above the keys of the example, as comments of YAML.
  ///   - shownLists: Lists of sections that the example shows with one element, because the program hardly works
  ///     without them.
  ///   - shownKeys: Keys that the example shows although they are not required.
  ///   - entryNames: The names that the example has for entries whose names the file chooses, by their section.
  public init(
    of table: SettingsTable, referenceIntroduction: String, exampleIntroduction: String,
    shownLists: Set<String> = [], shownKeys: Set<String> = [], entryNames: [String: String] = [:]
  ) {
    self.table = table
    self.referenceIntroduction = referenceIntroduction
    self.exampleIntroduction = exampleIntroduction
    self.shownLists = shownLists
    self.shownKeys = shownKeys
    self.entryNames = entryNames
  }

  /// The JSON Schema (draft 2020-12) of the configuration file, for editors, with a trailing newline.
  public var schema: String { ConfigurationSchema(table).text }

  /// An example of the configuration file with every key, with a trailing newline: keys with a default have it,
  /// required keys have an example, and all other keys are commented out.
  public var example: String { ConfigurationExample.text(of: self) }

  /// The reference in Markdown, with a row for each key and a trailing newline.
  public var reference: String { referenceIntroduction + ConfigurationReference.table(of: table) }
}
