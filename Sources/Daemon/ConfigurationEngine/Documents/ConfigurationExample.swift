/// An example of the configuration file, with every key: keys with a default have it, required keys have an example,
/// and all other keys are commented out.
struct ConfigurationExample {
  /// The document, with a trailing newline.
  static func text(of documents: SettingsDocuments) -> String {
    let example = ConfigurationExample(shownLists: documents.shownLists, shownKeys: documents.shownKeys)
    let rows = documents.table.keys.map { key in
      Row(steps: SettingPath(pattern: key.pattern, indices: []).steps[...], key: key)
    }
    let lines = example.section(rows, indentation: 0).map(\.text)
    return documents.exampleIntroduction + lines.joined(separator: "\n") + "\n"
  }

  let shownLists: Set<String>
  let shownKeys: Set<String>

  /// A key, and the steps of its path below the current section.
  private struct Row {
    var steps: ArraySlice<String>
    let key: KeyDefinition
    /// The value to show, other than the default or the example.
    var text: String?
  }

  private struct Line {
    var content: String
    var indentation: Int
    /// Whether the whole line is commented out, so that removing one `#` puts it into effect.
    var isOff: Bool

    var text: String {
      content.isEmpty ? "" : (isOff ? "#" : "") + String(repeating: " ", count: indentation) + content
    }
  }

  private func section(_ rows: [Row], indentation: Int) -> [Line] {
    var lines: [Line] = []
    for (name, rows) in NestedRows.groups(rows, by: \.steps) {
      if indentation == 0, !lines.isEmpty { lines.append(Line(content: "", indentation: 0, isOff: false)) }
      lines += member(name, rows, indentation: indentation)
    }
    return lines
  }

  private func member(_ name: String, _ rows: [Row], indentation: Int) -> [Line] {
    guard let first = rows.first else { return [] }
    if first.steps.isEmpty { return value(first, written: "\(name): ", indentation: indentation) }
    if first.steps.first != "[]" { return headed(name, section(rows, indentation: indentation + 2), indentation) }
    let elements = rows.map { Row(steps: $0.steps.dropFirst(), key: $0.key) }
    if elements.count == 1, first.steps.count == 1 {
      return value(first, written: "\(name): ", isList: true, indentation: indentation)
    }
    let pattern = first.key.pattern.prefix(first.key.pattern.count - first.steps.suffixLength)
    let isShown = shownLists.contains(String(pattern))
    let conditions = elements.compactMap(\.key.condition).filter { $0.value != $0.standard }
    var lines = element(
      elements.filter { $0.key.condition.map(conditions.contains) != true }, isShown: isShown, indentation)
    for (index, condition) in conditions.enumerated() where !conditions[..<index].contains(condition) {
      lines += element(Self.rows(of: condition, elements), isShown: false, indentation)
    }
    return headed(name, lines, indentation)
  }

  private func element(_ rows: [Row], isShown: Bool, _ indentation: Int) -> [Line] {
    var lines = section(rows, indentation: indentation + 4)
    // The first key follows the dash of the element, and its comment stands above both.
    guard let dash = lines.firstIndex(where: { !$0.content.hasPrefix("#") }) else { return [] }
    for index in 0...dash { lines[index].indentation -= 2 }
    lines[dash].content = "- " + lines[dash].content
    if !isShown { for index in lines.indices { lines[index].isOff = true } }
    return lines
  }

  /// The keys of an element that meets `condition`, each with a value for it.
  private static func rows(of condition: ElementCondition, _ rows: [Row]) -> [Row] {
    rows.filter { $0.key.condition == condition || $0.key.name == condition.member }.map { row in
      row.key.name == condition.member ? Row(steps: row.steps, key: row.key, text: condition.value) : row
    }
  }

  /// A section is commented out if everything in it is.
  private func headed(_ name: String, _ lines: [Line], _ indentation: Int) -> [Line] {
    let isOff = lines.allSatisfy { $0.isOff || $0.content.hasPrefix("#") }
    let body = isOff ? lines.map { Line(content: $0.content, indentation: $0.indentation, isOff: true) } : lines
    return [Line(content: "\(name):", indentation: indentation, isOff: isOff)] + body
  }

  private func value(
    _ row: Row, written start: String, isList: Bool = false, indentation: Int
  ) -> [Line] {
    let key = row.key
    let isOff = key.standard == nil && !key.isRequired && !shownKeys.contains(key.pattern)
    let text = EffectiveYAML.scalar(row.text ?? key.standard ?? key.example ?? "")
    // Names of files and texts need no explanation.
    let values = key.isPath || key.form == key.kind ? [] : ["Values: \(key.form)."]
    let comment = ([key.meaning] + values).flatMap { Self.wrapped($0, width: 112 - indentation) }.map {
      Line(content: "# " + $0, indentation: indentation, isOff: isOff)
    }
    return comment + [Line(content: start + (isList ? "[\(text)]" : text), indentation: indentation, isOff: isOff)]
  }

  private static func wrapped(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + word.count < width {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}

extension ArraySlice<String> {
  /// The length of these steps at the end of a pattern: `[].path` has 7 characters.
  fileprivate var suffixLength: Int { reduce(0) { $0 + $1.count + ($1 == "[]" ? 0 : 1) } }
}
