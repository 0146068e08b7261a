/// A key with its value as text and its origin.
public struct EffectiveValue: Sendable, Hashable {
  /// The path of the key: `routes[0].upstream`.
  public let key: String
  /// `nil` if the key has no value.
  public let text: String?
  public let origin: SettingSource

  public init(key: String, text: String?, origin: SettingSource) {
    self.key = key
    self.text = text
    self.origin = origin
  }
}

extension SettingsBuilder {
  /// Every key of the table with its value and origin.
  public func effectiveValues() -> [EffectiveValue] {
    table.keys.flatMap { key in
      places(of: key.pattern).filter { applies(key, at: $0) }.map { place in
        let entry = entries.values[place]
        // A list without elements has no value, but may have been given.
        let list = place.pattern == key.pattern ? nil : entries.containers[place]
        return EffectiveValue(
          key: place.text, text: (entry?.text ?? key.standard).map(key.masked),
          origin: entry?.origin ?? list ?? .standard)
      }
    } + emptySections()
  }

  /// Whether the list element at `place` meets the condition of `key`.
  private func applies(_ key: KeyDefinition, at place: SettingPath) -> Bool {
    guard let condition = key.condition, let member = place.element?[condition.member] else { return true }
    return !entries.isFaulty(member) && (entries.values[member]?.text ?? condition.standard) == condition.value
  }

  /// Lists of sections that were given without elements.
  private func emptySections() -> [EffectiveValue] {
    let lists = entries.containers.filter { path, _ in
      guard case .list = table.shape(of: path) else { return false }
      return entries.indices(of: path).isEmpty && table.hasSections(in: path)
    }
    return lists.sorted { $0.key.text < $1.key.text }.map {
      EffectiveValue(key: $0.key.text, text: nil, origin: $0.value)
    }
  }

  /// The paths of `pattern`: one for each element of its lists. An empty list of values is represented by its own
  /// path.
  private func places(of pattern: String) -> [SettingPath] {
    let steps = SettingPath(pattern: pattern, indices: []).steps
    var paths = [SettingPath.root]
    for (number, step) in steps.enumerated() {
      paths = paths.flatMap { path -> [SettingPath] in
        guard step == "[]" else { return [path[step]] }
        let elements = entries.indices(of: path).map { path[$0] }
        return elements.isEmpty && number == steps.count - 1 ? [path] : elements
      }
    }
    return paths
  }
}
