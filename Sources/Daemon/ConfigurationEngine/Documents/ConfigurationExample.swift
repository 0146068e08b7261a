/// An example of the configuration file, with every key: keys with a default have it, required keys have an example,
/// and all other keys are commented out.
struct ConfigurationExample {
  /// The document, with a trailing newline.
  static func text(of documents: SettingsDocuments) -> String {
    let example = ConfigurationExample(
      shownLists: documents.shownLists, shownKeys: documents.shownKeys, entryNames: documents.entryNames)
    let rows = documents.table.keys.map { key in
      Row(steps: SettingPath(pattern: key.pattern, indices: []).steps[...], key: key)
    }
    let lines = example.section(rows, indentation: 0).map(\.text)
    return documents.exampleIntroduction + lines.joined(separator: "\n") + "\n"
  }

  let shownLists: Set<String>
  let shownKeys: Set<String>
  let entryNames: [String: String]

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

    /// The line, commented out.
    var off: Line { Line(content: content, indentation: indentation, isOff: true) }

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
    guard let step = first.steps.first, ["[]", "*"].contains(step) else {
      return headed(name, section(rows, indentation: indentation + 2), indentation)
    }
    let elements = rows.map { Row(steps: $0.steps.dropFirst(), key: $0.key) }
    let pattern = String(first.key.pattern.prefix(first.key.pattern.count - first.steps.suffixLength))
    if step == "*" {
      let entries = Self.variants(elements).flatMap { condition, rows in
        let entry = member(condition?.value ?? entryNames[pattern] ?? "name", rows, indentation: indentation + 2)
        return condition == nil ? entry : entry.map(\.off)
      }
      return headed(name, entries, indentation)
    }
    if elements.count == 1, first.steps.count == 1 {
      return value(first, written: "\(name): ", isList: true, indentation: indentation)
    }
    let isShown = shownLists.contains(pattern)
    let lines = Self.variants(elements).flatMap { condition, rows in
      element(rows, isShown: isShown && condition == nil, indentation)
    }
    return headed(name, lines, indentation)
  }

  private func element(_ rows: [Row], isShown: Bool, _ indentation: Int) -> [Line] {
    var lines = section(rows, indentation: indentation + 4)
    // The first key follows the dash of the element, and its comment stands above both.
    guard let dash = lines.firstIndex(where: { !$0.content.hasPrefix("#") }) else { return [] }
    for index in 0...dash { lines[index].indentation -= 2 }
    lines[dash].content = "- " + lines[dash].content
    return isShown ? lines : lines.map(\.off)
  }

  /// The rows of the usual element or named entry, and those of a further one for each condition that it does not meet.
  private static func variants(_ rows: [Row]) -> [(condition: ElementCondition?, rows: [Row])] {
    var others: [ElementCondition] = []
    for case let condition? in rows.map(\.key.condition)
    where condition.value != condition.standard && !others.contains(condition) {
      others.append(condition)
    }
    return [(nil, rows.filter { $0.key.condition.map(others.contains) != true })]
      + others.map { ($0, Self.rows(of: $0, rows)) }
  }

  /// The keys of an element that meets `condition`, each with a value for it.
  private static func rows(of condition: ElementCondition, _ rows: [Row]) -> [Row] {
    rows.filter { row in
      row.key.condition == condition || row.key.name == condition.member
        || row.key.isRequired && row.key.condition == nil
    }.map { row in
      row.key.name == condition.member ? Row(steps: row.steps, key: row.key, text: condition.value) : row
    }
  }

  /// A section is commented out if everything in it is.
  private func headed(_ name: String, _ lines: [Line], _ indentation: Int) -> [Line] {
    let isOff = lines.allSatisfy { $0.isOff || $0.content.hasPrefix("#") }
    let body = isOff ? lines.map(\.off) : lines
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
