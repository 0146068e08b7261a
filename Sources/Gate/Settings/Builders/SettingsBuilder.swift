/// Converts texts to typed settings, and checks conditions that involve several values or files.
///
/// Every part is processed even if an earlier one is faulty, so that all faults are reported at once.
struct SettingsBuilder {
  let entries: Entries
  private(set) var faults: [ConfigurationError] = []
  private(set) var warnings: [Warning] = []

  init(_ entries: Entries) { self.entries = entries }

  mutating func refuse(_ path: SettingPath, _ reason: String, suggestion: String? = nil, hint: String? = nil) {
    faults.append(
      ConfigurationError(entries.nearestOrigin(of: path), path.text, reason, suggestion: suggestion, hint: hint))
  }

  mutating func warn(_ path: SettingPath, _ text: String) {
    warnings.append(Warning(entries.nearestOrigin(of: path), path.text, text))
  }

  func path<Value>(_ key: Key<Value>, _ indices: Int...) -> SettingPath {
    SettingPath(pattern: key.definition.pattern, indices: indices)
  }

  /// The given value of `key`, or its default; `nil` if there is neither, or the given value is faulty.
  func value<Value>(_ key: Key<Value>, _ indices: Int...) -> Value? {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard !entries.isFaulty(path) else { return nil }
    return read(key, entries.values[path]?.text ?? key.definition.standard)
  }

  /// The value of a required key without a default.
  mutating func required<Value>(_ key: Key<Value>, _ indices: Int..., hint: String? = nil) -> Value? {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard !entries.isFaulty(path) else { return nil }
    guard let entry = entries.values[path] else {
      refuse(path, "missing", hint: hint)
      return nil
    }
    return read(key, entry.text)
  }

  /// The elements of a list of values, or the default if the list was not given.
  mutating func elements<Value: Hashable>(_ key: Key<Value>, _ indices: Int...) -> [Value] {
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
  mutating func elementIndices(of list: SettingPath) -> [Int] {
    let indices = entries.indices(of: list)
    for (expected, index) in indices.enumerated() where expected != index {
      refuse(list[index], "element \(expected) before it is missing")
      break
    }
    return indices
  }

  /// Checks the content of the file at `key`, if one is configured.
  mutating func check(_ rule: FileContentRule, _ key: Key<String>, _ indices: Int...) {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard let file = entries.values[path]?.text, let violation = rule.violation(at: file) else { return }
    refuse(path, violation)
  }

  /// Warns if every user of the machine can read the secret file at `key`.
  mutating func warnIfPublic(_ key: Key<String>) {
    guard let file = value(key), let permissions = FileContent.permissions(of: file), permissions & 0o004 != 0 else {
      return
    }
    warn(path(key), "every user of this machine can read \(file)")
  }

  /// Checks the content and the permissions of the file at `key`, which holds secret keys.
  ///
  /// Read permission for all users is a fault, because the keys may be compromised. Read permission for the group is
  /// a warning, except for credentials of the service manager, which sets it deliberately.
  ///
  /// - Parameter advice: the hint for a file with the wrong content.
  mutating func checkSecretKeys(
    _ rule: FileContentRule, _ key: Key<String>, _ indices: Int..., advice: String? = nil
  ) {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard let entry = entries.values[path] else { return }
    if let violation = rule.violation(at: entry.text) { return refuse(path, violation, hint: advice) }
    guard let permissions = FileContent.permissions(of: entry.text) else { return }
    if permissions & 0o004 != 0 {
      refuse(
        path, "every user of this machine can read \(entry.text)",
        hint: "run chmod 600 \(entry.text); replace the keys if others may have read them")
    } else if permissions & 0o040 != 0 {
      if case .credential = entry.origin { return }
      warn(path, "the group of \(entry.text) can read it")
    }
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
