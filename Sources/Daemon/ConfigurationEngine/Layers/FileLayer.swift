/// Reads the configuration file.
struct FileLayer {
  private let table: SettingsTable
  private let name: String
  private let folder: String
  private(set) var entries = Entries()

  /// Reads the YAML `text` of the file at `path`. Relative paths in it start from the file's folder.
  static func entries(
    of text: String, at path: String, in workingDirectory: String, _ table: SettingsTable
  ) -> Entries {
    let folder = FilePath.folder(of: FilePath.absolute(path, in: workingDirectory))
    var layer = FileLayer(table: table, name: path, folder: folder)
    do throws(YAMLDocument.Malformed) {
      layer.takeRoot(try YAMLDocument.parse(text))
    } catch {
      layer.entries.refuseFile(ConfigurationError(layer.origin(error.position), nil, error.reason))
    }
    return layer.entries
  }

  private init(table: SettingsTable, name: String, folder: String) {
    self.table = table
    self.name = name
    self.folder = folder
  }

  private func origin(_ position: YAMLDocument.Position) -> SettingSource {
    .file(name, line: position.line, column: position.column)
  }

  private mutating func refuse(
    _ path: SettingPath?, _ reason: String, at position: YAMLDocument.Position, suggestion: String? = nil
  ) {
    entries.refuse(ConfigurationError(origin(position), path?.text, reason, suggestion: suggestion))
    if let path { entries.markFaulty(path) }
  }

  private mutating func takeRoot(_ root: YAMLDocument.Node) {
    entries.noteRoot(from: origin(.start))
    switch root.content {
    case .empty: break
    case .section(let members): takeMembers(members, of: .root)
    case .scalar, .list:
      entries.refuseFile(
        ConfigurationError(
          origin(root.position), nil, "the file contains no keys; expected a form such as \(table.sample)"))
    }
  }

  private mutating func takeMembers(_ members: [YAMLDocument.Member], of section: SettingPath) {
    var seen: [String: YAMLDocument.Position] = [:]
    let hasNames = table.hasNames(in: section)
    for member in members {
      guard let key = member.key, hasNames ? !key.isEmpty : Self.isWord(key) else {
        refuse(section.text.isEmpty ? nil : section, "not a valid key: expected a word", at: member.position)
        continue
      }
      let path = hasNames ? section[name: key] : section[key]
      if let first = seen[key] {
        refuse(path, "set twice, first in line \(first.line)", at: member.position)
        continue
      }
      seen[key] = member.position
      take(member.value, as: path, from: member.position)
    }
  }

  /// Whether `key` can be a step of a path. Dots, brackets and stars are refused, because the key `a.b` would look like
  /// the key `b` in section `a`.
  private static func isWord(_ key: String) -> Bool {
    !key.isEmpty && !key.unicodeScalars.contains { ".[]*".unicodeScalars.contains($0) }
  }

  /// Reads the node at `path`. `start` is the position for faults about the key itself.
  private mutating func take(_ node: YAMLDocument.Node, as path: SettingPath, from start: YAMLDocument.Position) {
    switch table.shape(of: path) {
    case .unknown:
      // A file with so many faults is the file of another program; to look for what was meant would take seconds.
      let isOurs = entries.faults.count < 100
      refuse(path, "unknown key", at: start, suggestion: isOurs ? table.suggestion(for: path) : nil)
    case .value(let key):
      takeValue(node, as: path, key)
    case .list:
      takeList(node, as: path, from: start)
    case .section:
      takeSection(node, as: path, from: start)
    }
  }

  private mutating func takeValue(_ node: YAMLDocument.Node, as path: SettingPath, _ key: KeyDefinition) {
    switch node.content {
    case .scalar(let text): entries.take(text, for: path, key, from: origin(node.position), in: folder)
    case .empty: refuse(path, "value is empty", at: node.position)
    case .list(let elements) where key.takesList: takeJoined(elements, as: path, key, at: node.position)
    case .list: refuse(path, "expected one value, not a list", at: node.position)
    case .section: refuse(path, "expected one value, not a section", at: node.position)
    }
  }

  /// Reads a list in place of one text.
  private mutating func takeJoined(
    _ elements: [YAMLDocument.Node], as path: SettingPath, _ key: KeyDefinition, at position: YAMLDocument.Position
  ) {
    var texts: [String] = []
    for element in elements {
      guard case .scalar(let text) = element.content else {
        refuse(path, "expected a list of values", at: element.position)
        return
      }
      // Otherwise it would be two elements.
      guard !text.contains(",") else {
        refuse(
          path, "\(InvalidSetting.quoted(text)) contains a comma: give each value its own element", at: element.position
        )
        return
      }
      texts.append(text)
    }
    guard !texts.isEmpty else {
      refuse(path, "the list is empty", at: position)
      return
    }
    entries.take(texts.joined(separator: ", "), for: path, key, from: origin(position), in: folder)
  }

  private mutating func takeList(
    _ node: YAMLDocument.Node, as path: SettingPath, from start: YAMLDocument.Position
  ) {
    entries.note(path, from: origin(start))
    switch node.content {
    case .list(let elements):
      for (index, element) in elements.enumerated() { take(element, as: path[index], from: element.position) }
    case .empty: refuse(path, "value is empty; write [] for an empty list", at: start)
    case .scalar: refuse(path, "expected a list, for example [a, b]", at: node.position)
    case .section: refuse(path, "expected a list: start each element with a dash", at: node.position)
    }
  }

  private mutating func takeSection(
    _ node: YAMLDocument.Node, as path: SettingPath, from start: YAMLDocument.Position
  ) {
    entries.note(path, from: origin(start))
    switch node.content {
    case .section(let members): takeMembers(members, of: path)
    case .empty: break
    case .scalar, .list: refuse(path, "expected a section with keys", at: node.position)
    }
  }
}
