extension Assembly {
  /// Every key that this version has, with its value and where that comes from.
  func effectiveValues() -> [EffectiveValue] {
    SettingsTable.keys.filter(\.isAvailable).flatMap { key in
      places(of: key.pattern).map { place in
        let entry = entries.values[place]
        return EffectiveValue(
          key: place.text, text: (entry?.text ?? key.standard).map(key.masked), origin: entry?.origin ?? .standard)
      }
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
