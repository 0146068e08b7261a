/// The JSON Schema (draft 2020-12) of the configuration file, for editors.
///
/// The schema covers key names, types and the grammar of single values. Only `sallyport check` validates combinations
/// of keys and the contents of files. The schema refuses a list element without a required key, although an
/// environment variable could add it.
public enum ConfigurationSchema {
  /// The document, with a trailing newline.
  public static var text: String {
    let root: [(String, JSONNode)] =
      [
        ("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
        ("title", .text("Configuration of sallyport")),
      ] + section(steps: [])
    return JSONNode.object(root).written() + "\n"
  }

  private static let keys = SettingsTable.keys.map { key in
    (steps: SettingPath(pattern: key.pattern, indices: []).steps, key: key)
  }

  /// The schema members for the path `steps`.
  private static func schema(of steps: [String]) -> [(String, JSONNode)] {
    if let key = keys.first(where: { $0.steps == steps })?.key { return value(key) }
    let below = keys.filter { $0.steps.starts(with: steps) }
    guard below.first?.steps[steps.count] == "[]" else { return section(steps: steps) }
    let isOfValues = below.first?.steps.count == steps.count + 1
    return [("type", .text("array")), ("items", .object(schema(of: steps + ["[]"])))]
      + (isOfValues ? [("uniqueItems", .literal("true"))] : [])
  }

  private static func section(steps: [String]) -> [(String, JSONNode)] {
    var names: [String] = []
    for key in keys where key.steps.count > steps.count && key.steps.starts(with: steps) {
      if !names.contains(key.steps[steps.count]) { names.append(key.steps[steps.count]) }
    }
    let properties = names.map { ($0, JSONNode.object(schema(of: steps + [$0]))) }
    // A section may be empty; a list element may not.
    let isElement = steps.last == "[]"
    let required = keys.filter {
      isElement && $0.key.isRequired && $0.key.platform == nil && $0.steps.count == steps.count + 1
        && $0.steps.starts(with: steps)
    }
    return [
      ("type", isElement ? .text("object") : .list([.text("object"), .text("null")])),
      ("additionalProperties", .literal("false")),
      ("properties", .object(properties)),
    ] + (required.isEmpty ? [] : [("required", .list(required.map { .text($0.key.name) }))])
      + (isElement ? platforms(steps: steps) : [])
  }

  /// What depends on the platform of an element: the keys that it requires, and those that it may not have.
  private static func platforms(steps: [String]) -> [(String, JSONNode)] {
    let own = keys.filter { $0.key.platform != nil && $0.steps.starts(with: steps) }
    guard !own.isEmpty else { return [] }
    func rules(_ platform: GateSettings.Platform) -> JSONNode {
      let required = own.filter { $0.key.platform == platform && $0.key.isRequired }
      var foreign: [String] = []
      for key in own where key.key.platform != platform && !foreign.contains(key.steps[steps.count]) {
        foreign.append(key.steps[steps.count])
      }
      return .object([
        ("required", .list(required.map { .text($0.steps[steps.count]) })),
        ("properties", .object(foreign.map { ($0, .literal("false")) })),
      ])
    }
    let isAndroid = JSONNode.object([
      ("required", .list([.text("platform")])),
      ("properties", .object([("platform", .object([("const", .text("android"))]))])),
    ])
    return [("if", isAndroid), ("then", rules(.android)), ("else", rules(.ios))]
  }

  private static func value(_ key: KeyDefinition) -> [(String, JSONNode)] {
    var members = [
      ("description", JSONNode.text(key.description))
    ]
    members += key.schema.members
    // An element's default is not the default of an empty list.
    if let standard = key.standard, !key.pattern.hasSuffix("[]") {
      members.append(("default", key.schema.value(standard)))
    }
    if let example = key.example { members.append(("examples", .list([key.schema.value(example)]))) }
    return members
  }
}
