internal import ByteCoding
internal import ConfigurationEngine

/// A section of the file whose keys are known: finds its values and records the faults of their form.
struct SectionReader<Key: RawRepresentable<String> & CaseIterable & Hashable> {
  typealias Position = YAMLDocument.Position

  /// An element of a list.
  struct Element {
    let text: String
    let position: Position
  }

  /// Where the section stands, in the text and among the keys: `providers.work.`, or empty.
  let start: Position
  let prefix: String
  private var fields: [Key: YAMLDocument.Member] = [:]
  private(set) var faults = FaultList()
  /// The keys whose values have a fault. Further faults would only follow from it.
  private(set) var faulty: Set<Key> = []

  /// Finds the keys among `members`; unknown keys and repetitions are faults.
  init(_ members: [YAMLDocument.Member], at start: Position, prefix: String) {
    self.start = start
    self.prefix = prefix
    for member in members {
      guard let word = member.key, !word.isEmpty else {
        faults.add(member.position, prefix.isEmpty ? nil : String(prefix.dropLast()), "a key must be a word")
        continue
      }
      guard let key = Key(rawValue: word) else {
        let near = Suggestions.nearest(to: word, in: Key.allCases.map(\.rawValue))
        faults.add(member.position, prefix + word, "unknown key" + (near.map { " (did you mean \($0)?)" } ?? ""))
        continue
      }
      if let first = fields[key] {
        faults.add(member.position, prefix + word, "set twice, first in line \(first.position.line)")
      } else {
        fields[key] = member
      }
    }
  }

  func has(_ key: Key) -> Bool { fields[key] != nil }

  /// Where a fault of the value of `key` is reported: the value, or the section if the key is missing.
  func position(of key: Key) -> Position {
    guard let field = fields[key] else { return start }
    return if case .scalar = field.value.content { field.value.position } else { field.position }
  }

  mutating func refuse(_ key: Key, _ reason: String) { refuse(key, at: position(of: key), reason) }

  mutating func refuse(_ key: Key, _ index: Int? = nil, at position: Position, _ reason: String) {
    faulty.insert(key)
    faults.add(position, prefix + key.rawValue + (index.map { "[\($0)]" } ?? ""), reason)
  }

  /// The single value of `key`.
  mutating func text(_ key: Key) -> String? {
    guard let field = fields[key] else { return nil }
    switch field.value.content {
    case .scalar(let text): return text
    case .empty: refuse(key, "has no value")
    case .list, .section: refuse(key, "must be a single value")
    }
    return nil
  }

  /// The value of `key` among `choices`.
  mutating func choice<Value>(_ key: Key, _ choices: KeyValuePairs<String, Value>) -> Value? {
    guard let text = text(key) else { return nil }
    if let value = choices.first(where: { $0.key == text })?.value { return value }
    let words = choices.map(\.key)
    let near = Suggestions.nearest(to: text, in: words).map { " (did you mean \($0)?)" } ?? ""
    refuse(key, "must be \(words.joined(separator: " or "))\(near)")
    return nil
  }

  /// The elements of the list `key`.
  mutating func list(_ key: Key) -> [Element]? {
    guard let field = fields[key] else { return nil }
    switch field.value.content {
    case .list(let nodes):
      return nodes.enumerated().compactMap { index, node in
        if case .scalar(let text) = node.content { return Element(text: text, position: node.position) }
        refuse(key, index, at: node.position, "must be a single value")
        return nil
      }
    case .empty: refuse(key, "has no value")
    case .scalar, .section: refuse(key, "must be a list, such as [a, b]")
    }
    return nil
  }

  /// The members of the section `key`.
  mutating func section(_ key: Key) -> [YAMLDocument.Member]? {
    guard let field = fields[key] else { return nil }
    switch field.value.content {
    case .section(let members): return members
    case .empty: return []
    case .scalar, .list: refuse(key, "must contain keys")
    }
    return nil
  }
}
