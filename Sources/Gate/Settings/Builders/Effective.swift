extension SettingsBuilder {
  /// Every key that this version has, with its value and where that comes from.
  func effectiveValues() -> [EffectiveValue] {
    SettingsTable.keys.filter(\.isAvailable).flatMap { key in
      places(of: key.pattern).map { place in
        let entry = entries.values[place]
        // A list without elements has no value, and may have been given.
        let list = place.pattern == key.pattern ? nil : entries.containers[place]
        return EffectiveValue(
          key: place.text, text: (entry?.text ?? key.standard).map(key.masked),
          origin: entry?.origin ?? list ?? .standard)
      }
    } + emptySections()
  }

  /// Lists of sections that were given without elements: that they are empty is all there is to say of them.
  private func emptySections() -> [EffectiveValue] {
    let lists = entries.containers.filter { path, _ in
      guard case .list = SettingsTable.shape(of: path) else { return false }
      return entries.indices(of: path).isEmpty && SettingsTable.hasSections(in: path)
    }
    return lists.sorted { $0.key.text < $1.key.text }.map {
      EffectiveValue(key: $0.key.text, text: nil, origin: $0.value)
    }
  }

  /// The paths that `pattern` stands for: one for each element of its lists. A list of values without elements stands
  /// for itself.
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
