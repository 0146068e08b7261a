public import ArgumentParser

/// The options of a command that print a document of the settings in place of its work.
public struct DocumentOptions: ParsableArguments {
  @Flag(help: "Print the JSON Schema (draft 2020-12) of the configuration file and exit.")
  var schema = false

  @Flag(help: "Print an example of the configuration file with every key and exit.")
  var example = false

  @Flag(help: "Print the reference of all keys in Markdown and exit.")
  var reference = false

  public init() {}

  public func validate() throws {
    guard [schema, example, reference].count(where: \.self) <= 1 else {
      throw ValidationError("Only one of --schema, --example and --reference can be given.")
    }
  }

  /// The chosen one of `documents`, with a trailing newline; `nil` if none is chosen.
  public func text(of documents: SettingsDocuments) -> String? {
    if schema { return documents.schema }
    if example { return documents.example }
    return reference ? documents.reference : nil
  }
}
