internal import ByteCoding

extension SettingsTable {
  /// Effective settings as an equivalent configuration file. Paths are absolute, each value is followed by its
  /// origin, secrets are masked, and keys without a value are comments.
  public func yaml(of effective: [EffectiveValue]) -> String {
    let writer = EffectiveYAML(table: self)
    let lines = writer.section(effective.compactMap(EffectiveYAML.Row.init), indentation: "")
    let width = min(lines.filter { $0.origin != nil }.map(\.text.unicodeScalars.count).max() ?? 0, 60)
    let rendered = lines.map { line in
      let padding = String(repeating: " ", count: max(0, width - line.text.unicodeScalars.count) + 2)
      return line.origin.map { "\(line.text)\(padding)# \($0)" } ?? line.text
    }
    return rendered.joined(separator: "\n") + "\n"
  }
}

/// Formats effective values as nested sections and lists.
struct EffectiveYAML {
  let table: SettingsTable

  /// A value and its remaining path steps: names, or indices such as `[0]`.
  struct Row {
    var steps: ArraySlice<String>
    let value: EffectiveValue

    init?(_ value: EffectiveValue) {
      guard let path = SettingPath(text: value.key) else { return nil }
      var indices = path.indices[...]
      steps = path.steps.map { $0 == "[]" ? "[\(indices.popFirst() ?? 0)]" : $0 }[...]
      self.value = value
    }
  }

  struct Line {
    var text: String
    var origin: String?
    var isComment = false
  }

  func section(_ rows: [Row], indentation: String) -> [Line] {
    NestedRows.groups(rows, by: \.steps).flatMap { name, rows -> [Line] in
      if let row = rows.first, row.steps.isEmpty { return value(row.value, named: name, indentation) }
      let deeper = indentation + "  "
      let isList = rows.first?.steps.first?.hasPrefix("[") == true
      let lines = isList ? list(rows, indentation: deeper) : section(rows, indentation: deeper)
      return [Line(text: "\(indentation)\(name):")] + lines
    }
  }

  private func list(_ rows: [Row], indentation: String) -> [Line] {
    NestedRows.groups(rows, by: \.steps).flatMap { _, rows -> [Line] in
      if let row = rows.first, row.steps.isEmpty, let text = row.value.text {
        return [Line(text: "\(indentation)- \(Self.scalar(text))", origin: row.value.origin.label)]
      }
      var lines = section(rows, indentation: indentation + "  ")
      if let first = lines.firstIndex(where: { !$0.isComment }) {
        lines[first].text = "\(indentation)- " + lines[first].text.dropFirst(indentation.count + 2)
      }
      return lines
    }
  }

  private func value(_ value: EffectiveValue, named name: String, _ indentation: String) -> [Line] {
    let start = "\(indentation)\(name):"
    let origin = value.origin.label
    let isList = SettingPath(text: value.key).map { path in
      if case .list = table.shape(of: path) { true } else { false }
    }
    switch (isList == true, value.text) {
    case (false, let text?): return [Line(text: "\(start) \(Self.scalar(text))", origin: origin)]
    case (true, let text?):
      return [Line(text: start), Line(text: "\(indentation)  - \(Self.scalar(text))", origin: origin)]
    case (true, nil) where value.origin != .standard: return [Line(text: "\(start) []", origin: origin)]
    case (_, nil): return [Line(text: "\(indentation)# \(name): not set", isComment: true)]
    }
  }

  /// Formats `text` as a YAML scalar, without quotes only if every YAML reader parses it as the same string.
  static func scalar(_ text: String) -> String {
    let isBare =
      text.unicodeScalars.first.map(isOpening) == true && text.unicodeScalars.allSatisfy(isInner)
      && !text.hasSuffix(":") && !["null", "true", "false", "yes", "no", "on", "y", "n"].contains(text.lowercased())
    return isBare || ["true", "false", "off"].contains(text) ? text : quoted(text)
  }

  private static func isOpening(_ scalar: Unicode.Scalar) -> Bool {
    scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "/")
  }

  private static func isInner(_ scalar: Unicode.Scalar) -> Bool {
    isOpening(scalar) || scalar.isASCII && "._:@+=&?-".unicodeScalars.contains(scalar)
  }

  /// Returns `text` in double quotes, with characters escaped that YAML does not allow.
  private static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.map { scalar -> String in
      switch scalar {
      case "\"", "\\": return "\\\(scalar)"
      case " "..."~", "\u{A0}"..."\u{2027}", "\u{202A}"..."\u{D7FF}", "\u{E000}"..."\u{FEFE}", "\u{FF00}"..."\u{FFFD}":
        if !TerminalText.isUnsafe(scalar) { return String(scalar) }
        fallthrough
      default:
        let digits = String(scalar.value, radix: 16)
        return "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
      }
    }
    return "\"" + escaped.joined() + "\""
  }
}

extension SettingSource {
  /// The origin in a few words, on one line.
  public var label: String {
    let text =
      switch self {
      case .standard: "default"
      case .dotenv(_, let variable): "\(self) \(variable)"
      case .credential(let path): "credential \(path)"
      case .file, .environment, .flag: description
      }
    return text.onOneLine
  }
}
