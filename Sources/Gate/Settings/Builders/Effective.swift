extension SettingsBuilder {
  /// Every key of this version with its value and origin.
  func effectiveValues() -> [EffectiveValue] {
    SettingsTable.keys.flatMap { key in
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

  /// Whether the element at `place` has the platform of `key`.
  private func applies(_ key: KeyDefinition, at place: SettingPath) -> Bool {
    guard let platform = key.platform, let index = place.indices.first else { return true }
    return value(Keys.platform, index) == platform
  }

  /// Lists of sections that were given without elements.
  private func emptySections() -> [EffectiveValue] {
    let lists = entries.containers.filter { path, _ in
      guard case .list = SettingsTable.shape(of: path) else { return false }
      return entries.indices(of: path).isEmpty && SettingsTable.hasSections(in: path)
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
