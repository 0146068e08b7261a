/// The JSON Schema (draft 2020-12) of the configuration file, for editors.
///
/// The schema covers key names, types and the grammar of single values. Only `sallyport check` validates combinations
/// of keys and the contents of files. The schema refuses a list element without a required key, although an
/// environment variable could add it.
struct ConfigurationSchema {
  private let program: String
  private let keys: [(steps: [String], key: KeyDefinition)]

  init(_ table: SettingsTable) {
    program = table.program
    keys = table.keys.map { (steps: SettingPath(pattern: $0.pattern, indices: []).steps, key: $0) }
  }

  /// The document, with a trailing newline.
  var text: String {
    let root: [(String, JSONNode)] =
      [
        ("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
        ("title", .text("Configuration of \(program)")),
      ] + section(steps: [])
    return JSONNode.object(root).written() + "\n"
  }

  /// The schema members for the path `steps`.
  private func schema(of steps: [String]) -> [(String, JSONNode)] {
    if let key = keys.first(where: { $0.steps == steps })?.key { return value(key) }
    let below = keys.filter { $0.steps.starts(with: steps) }
    guard below.first?.steps[steps.count] == "[]" else { return section(steps: steps) }
    let isOfValues = below.first?.steps.count == steps.count + 1
    return [("type", .text("array")), ("items", .object(schema(of: steps + ["[]"])))]
      + (isOfValues ? [("uniqueItems", .literal("true"))] : [])
  }

  private func section(steps: [String]) -> [(String, JSONNode)] {
    var names: [String] = []
    for key in keys where key.steps.count > steps.count && key.steps.starts(with: steps) {
      if !names.contains(key.steps[steps.count]) { names.append(key.steps[steps.count]) }
    }
    if names == ["*"] {
      let entry = JSONNode.object(schema(of: steps + names))
      return [("type", .list([.text("object"), .text("null")])), ("additionalProperties", entry)]
    }
    let properties = names.map { ($0, JSONNode.object(schema(of: steps + [$0]))) }
    // A section may be empty; a list element and a named entry may not.
    let isElement = ["[]", "*"].contains(steps.last)
    let required = keys.filter {
      isElement && $0.key.isRequired && $0.key.condition == nil && $0.steps.count == steps.count + 1
        && $0.steps.starts(with: steps)
    }
    return [
      ("type", isElement ? .text("object") : .list([.text("object"), .text("null")])),
      ("additionalProperties", .literal("false")),
      ("properties", .object(properties)),
    ] + (required.isEmpty ? [] : [("required", .list(required.map { .text($0.key.name) }))])
      + (isElement ? alternatives(steps: steps) : [])
  }

  /// What depends on the condition of an element's keys: those that it requires, and those that it may not have.
  private func alternatives(steps: [String]) -> [(String, JSONNode)] {
    let own = keys.filter { $0.key.condition != nil && $0.steps.starts(with: steps) }
    var conditions: [ElementCondition] = []
    for case let condition? in own.map(\.key.condition) where !conditions.contains(condition) {
      conditions.append(condition)
    }
    let standard = conditions.filter { $0.value == $0.standard }.map { rules($0, among: own, steps: steps) }
    return conditions.filter { $0.value != $0.standard }.reversed().reduce(standard.first ?? []) { otherwise, other in
      let isOther = JSONNode.object([
        ("required", .list([.text(other.member)])),
        ("properties", .object([(other.member, .object([("const", .text(other.value))]))])),
      ])
      let then = JSONNode.object(rules(other, among: own, steps: steps))
      return [("if", isOther), ("then", then), ("else", .object(otherwise))]
    }
  }

  private func rules(
    _ condition: ElementCondition, among own: [(steps: [String], key: KeyDefinition)], steps: [String]
  ) -> [(String, JSONNode)] {
    let required = own.filter { $0.key.condition == condition && $0.key.isRequired }
    return [
      ("required", .list(required.map { .text($0.steps[steps.count]) })),
      ("properties", .object(foreign(to: condition, steps: steps))),
    ]
  }

  /// The members below `steps` that an element with `condition` may not have: sections of which it may have nothing, and
  /// the foreign members of other sections.
  private func foreign(to condition: ElementCondition, steps: [String]) -> [(String, JSONNode)] {
    var names: [String] = []
    for key in keys where key.steps.starts(with: steps) && key.key.condition.map({ $0 != condition }) == true {
      if !names.contains(key.steps[steps.count]) { names.append(key.steps[steps.count]) }
    }
    return names.map { name in
      let below = steps + [name]
      let isForeign = keys.allSatisfy { key in
        !key.steps.starts(with: below) || key.key.condition.map { $0 != condition } == true
      }
      guard !isForeign else { return (name, .literal("false")) }
      return (name, .object([("properties", .object(foreign(to: condition, steps: below)))]))
    }
  }

  private func value(_ key: KeyDefinition) -> [(String, JSONNode)] {
    var members = [
      ("description", JSONNode.text(key.description))
    ]
    if key.takesList, let element = key.schema.element {
      let list: [(String, JSONNode)] = [
        ("type", .text("array")), ("items", .object(element.members)), ("minItems", .literal("1")),
        ("uniqueItems", .literal("true")),
      ]
      members.append(("anyOf", .list([.object(key.schema.members), .object(list)])))
    } else {
      members += key.schema.members
    }
    // An element's default is not the default of an empty list.
    if let standard = key.standard, !key.pattern.hasSuffix("[]") {
      members.append(("default", key.schema.value(standard)))
    }
    if let example = key.example { members.append(("examples", .list([key.schema.value(example)]))) }
    return members
  }
}
