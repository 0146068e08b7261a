internal import ByteCoding

/// Documents that follow from the definitions of the settings.
public enum SettingsDocuments {
  /// The JSON Schema (draft 2020-12) of the configuration file, for editors and validators.
  public static var schema: String {
    let tree = SchemaNode(SettingKey.all.map { ($0.path.split(separator: ".").map(String.init)[...], $0) })
    let head = [
      "\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"", "\"title\": \"Configuration of mfa-backend\"",
    ]
    return tree.text(indentation: "", head: head) + "\n"
  }

  /// The reference of all keys: a table in Markdown.
  public static var reference: String {
    let rows = SettingKey.all.map { key in
      "| `\(key.path)` | \(key.standard.map { "`\($0)`" } ?? "") | \(key.summary) |"
    }
    return (["| key | default | what it does |", "|---|---|---|"] + rows).joined(separator: "\n") + "\n"
  }
}

/// A section or a setting of the schema.
private struct SchemaNode {
  var members: [(name: String, node: SchemaNode)] = []
  var key: SettingKey?

  init(_ keys: [(path: ArraySlice<String>, key: SettingKey)]) {
    for (path, key) in keys {
      guard let name = path.first else {
        self.key = key
        continue
      }
      guard !members.contains(where: { $0.name == name }) else { continue }
      let below: [(path: ArraySlice<String>, key: SettingKey)] = keys.filter { $0.path.first == name }
        .map { ($0.path.dropFirst(), $0.key) }
      members.append((name, SchemaNode(below)))
    }
  }

  func text(indentation: String, head: [String] = []) -> String {
    let inner = indentation + "  "
    var lines = head
    if let key {
      lines += key.schemaMembers
    } else {
      lines += ["\"type\": [\"object\", \"null\"]", "\"additionalProperties\": false"]
      let properties = members.map { name, node in
        inner + "  " + JSONText.quote(name) + ": " + node.text(indentation: inner + "  ")
      }
      lines.append("\"properties\": {\n" + properties.joined(separator: ",\n") + "\n" + inner + "}")
    }
    return "{\n" + lines.map { inner + $0 }.joined(separator: ",\n") + "\n" + indentation + "}"
  }
}

extension SettingKey {
  /// The members of the key's schema. YAML reads `8080` as a number and `off` as a text or, in YAML 1.1, as `false`.
  fileprivate var schemaMembers: [String] {
    var lines = ["\"description\": " + JSONText.quote(summary)]
    switch kind {
    case .text, .name, .file, .fileOrURL: lines += ["\"type\": \"string\"", "\"minLength\": 1"]
    case .integer(let range):
      lines += [
        "\"type\": [\"integer\", \"string\"]", "\"minimum\": \(range.lowerBound)",
        "\"maximum\": \(range.upperBound)", "\"pattern\": \"^[0-9]+$\"",
      ]
    case .choice(let words): lines.append(Self.choice(words))
    case .cap(let range, let canBeOff):
      lines += [
        "\"type\": [\"integer\", \"string\"\(canBeOff ? ", \"boolean\"" : "")]",
        "\"minimum\": \(canBeOff ? 0 : range.lowerBound)", "\"maximum\": \(range.upperBound)",
        "\"pattern\": \"^(\(canBeOff ? "off|" : "")[0-9]+)$\"",
      ]
    case .rate(let canBeOff):
      lines += [
        "\"type\": [\"string\"\(canBeOff ? ", \"integer\", \"boolean\"" : "")]",
        "\"pattern\": \"^(\(canBeOff ? "off|0|" : "")[0-9]+/[0-9]+[smhd])$\"",
      ]
    case .duration: lines += ["\"type\": \"string\"", "\"pattern\": \"^[0-9]+[smhd]$\""]
    case .wait:
      lines += ["\"type\": [\"string\", \"boolean\"]", "\"pattern\": \"^(off|[0-9]+[smhd])$\""]
    }
    if let standard { lines.append("\"default\": " + (Int(standard).map(String.init) ?? JSONText.quote(standard))) }
    return lines
  }

  private static func choice(_ words: [String]) -> String {
    // Validators that read YAML 1.1 pass `on` and `off` as truth values.
    let truths = (words.contains("on") ? ["true"] : []) + (words.contains("off") ? ["false"] : [])
    return "\"enum\": [" + (words.map(JSONText.quote) + truths).joined(separator: ", ") + "]"
  }
}
