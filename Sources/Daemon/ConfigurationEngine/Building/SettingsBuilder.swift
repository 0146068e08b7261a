/// Converts texts to typed settings, and checks conditions that involve several values or files.
///
/// Every part is processed even if an earlier one is faulty, so that all faults are reported at once.
public struct SettingsBuilder {
  public let table: SettingsTable
  public let entries: Entries
  public private(set) var faults: [ConfigurationError] = []
  public private(set) var warnings: [Warning] = []

  public init(_ entries: Entries, _ table: SettingsTable) {
    self.entries = entries
    self.table = table
  }

  /// Records a fault at the place of `path`.
  public mutating func refuse(_ path: SettingPath, _ reason: String, suggestion: String? = nil, hint: String? = nil) {
    faults.append(
      ConfigurationError(entries.nearestOrigin(of: path), path.text, reason, suggestion: suggestion, hint: hint))
  }

  /// Records a warning at the place of `path`.
  public mutating func warn(_ path: SettingPath, _ text: String) {
    warnings.append(Warning(entries.nearestOrigin(of: path), path.text, text))
  }

  /// The path of `key` in the list elements `indices`; missing indices are 0.
  public func path<Value>(_ key: Key<Value>, _ indices: Int...) -> SettingPath {
    SettingPath(pattern: key.definition.pattern, indices: indices)
  }

  /// The given value of `key`, or its default; `nil` if there is neither, or the given value is faulty.
  public func value<Value>(_ key: Key<Value>, _ indices: Int...) -> Value? {
    value(key, at: SettingPath(pattern: key.definition.pattern, indices: indices))
  }

  /// The given value of `key` at `path`, or its default; `nil` if there is neither, or the given value is faulty.
  public func value<Value>(_ key: Key<Value>, at path: SettingPath) -> Value? {
    guard !entries.isFaulty(path) else { return nil }
    return read(key, entries.values[path]?.text ?? key.definition.standard)
  }

  /// The value of a required key without a default.
  public mutating func required<Value>(_ key: Key<Value>, _ indices: Int..., hint: String? = nil) -> Value? {
    required(key, at: SettingPath(pattern: key.definition.pattern, indices: indices), hint: hint)
  }

  /// The value at `path` of a required key without a default.
  public mutating func required<Value>(_ key: Key<Value>, at path: SettingPath, hint: String? = nil) -> Value? {
    guard !entries.isFaulty(path) else { return nil }
    guard let entry = entries.values[path] else {
      refuse(path, "missing", hint: hint)
      return nil
    }
    return read(key, entry.text)
  }

  /// The elements of a list of values, or the default if the list was not given.
  public mutating func elements<Value: Hashable>(_ key: Key<Value>, _ indices: Int...) -> [Value] {
    let list = SettingPath(pattern: key.definition.pattern, indices: indices).parent
    let given = elementIndices(of: list)
    if given.isEmpty, entries.containers[list] == nil, let standard = read(key, key.definition.standard) {
      return [standard]
    }
    var values: [Value] = []
    for index in given {
      guard let value = read(key, entries.values[list[index]]?.text) else { continue }
      if values.contains(value) { refuse(list[index], "given twice") } else { values.append(value) }
    }
    return values
  }

  /// The indices of a list's elements. A gap in the indices is a fault.
  public mutating func elementIndices(of list: SettingPath) -> [Int] {
    let indices = entries.indices(of: list)
    for (expected, index) in indices.enumerated() where expected != index {
      refuse(list[index], "element \(expected) before it is missing")
      break
    }
    return indices
  }

  /// Refuses an empty list of `key`, where a list that is left out means everything.
  public mutating func refuseEmptyList<Value>(_ key: Key<Value>, _ indices: Int..., meaning everything: String) {
    refuseEmptyList(SettingPath(pattern: key.definition.pattern, indices: indices).parent, meaning: everything)
  }

  /// Refuses an empty list at `list`, where a list that is left out means everything.
  public mutating func refuseEmptyList(_ list: SettingPath, meaning everything: String) {
    if isEmptyList(list) { refuse(list, "empty list; leave it out for \(everything)") }
  }

  /// Warns of an empty list of `key` that means everything, where files of earlier versions may have one.
  public mutating func warnOfEmptyList<Value>(_ key: Key<Value>, meaning everything: String) {
    let list = SettingPath(pattern: key.definition.pattern).parent
    if isEmptyList(list) { warn(list, "an empty list means \(everything); leave it out for that") }
  }

  private func isEmptyList(_ list: SettingPath) -> Bool {
    entries.containers[list] != nil && entries.indices(of: list).isEmpty && !entries.isFaulty(list)
  }

  private func read<Value>(_ key: Key<Value>, _ text: String?) -> Value? {
    guard let text else { return nil }
    do throws(InvalidSetting) {
      return try key.kind.read(text)
    } catch {
      // Entries hold only valid texts, and a test reads every default.
      return nil
    }
  }
}
