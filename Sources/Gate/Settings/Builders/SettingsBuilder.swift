/// Makes typed settings of texts, and checks what no text can tell alone.
///
/// Every part is made whether or not an earlier one is sound, so that all faults are told at once.
struct SettingsBuilder {
  let entries: Entries
  private(set) var faults: [Fault] = []
  private(set) var warnings: [Warning] = []

  init(_ entries: Entries) { self.entries = entries }

  mutating func refuse(_ path: SettingPath, _ reason: String, suggestion: String? = nil, hint: String? = nil) {
    faults.append(Fault(entries.nearestOrigin(of: path), path.text, reason, suggestion: suggestion, hint: hint))
  }

  mutating func warn(_ path: SettingPath, _ text: String) {
    warnings.append(Warning(entries.nearestOrigin(of: path), path.text, text))
  }

  func path<Value>(_ key: Key<Value>, _ indices: Int...) -> SettingPath {
    SettingPath(pattern: key.definition.pattern, indices: indices)
  }

  /// The value of `key` as it was given, or its default; `nil` if there is neither, or what was given is a fault.
  func value<Value>(_ key: Key<Value>, _ indices: Int...) -> Value? {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard !entries.isFaulty(path) else { return nil }
    return read(key, entries.values[path]?.text ?? key.definition.standard)
  }

  /// The value of a key that has no default and cannot be left out.
  mutating func required<Value>(_ key: Key<Value>, _ indices: Int..., hint: String? = nil) -> Value? {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard !entries.isFaulty(path) else { return nil }
    guard let entry = entries.values[path] else {
      refuse(path, "missing", hint: hint)
      return nil
    }
    return read(key, entry.text)
  }

  /// The elements of a list of values, each with its path; the default where the list was not given.
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

  /// The indices of a list's elements; one that leaves some out is a fault.
  mutating func elementIndices(of list: SettingPath) -> [Int] {
    let indices = entries.indices(of: list)
    for (expected, index) in indices.enumerated() where expected != index {
      refuse(list[index], "there is no element \(expected) before it")
      break
    }
    return indices
  }

  /// Checks the file at `key`, if one was given.
  mutating func check(_ rule: FileContentRule, _ key: Key<String>, _ indices: Int...) {
    let path = SettingPath(pattern: key.definition.pattern, indices: indices)
    guard let file = entries.values[path]?.text, let violation = rule.violation(at: file) else { return }
    refuse(path, violation)
  }

  /// Warns if the file at `key` holds a secret that every user of the machine can read.
  mutating func warnIfPublic(_ key: Key<String>) {
    guard let file = value(key), let permissions = FileContent.permissions(of: file), permissions & 0o004 != 0 else {
      return
    }
    warn(path(key), "every user of this machine can read \(file)")
  }

  /// Checks the file at `key`, which holds keys: what is in it, and who can read it.
  ///
  /// That every user of the machine can is a fault: the keys are to be taken for known. That the file's group can is a
  /// warning, unless the service manager has laid it there, which says so on purpose.
  ///
  /// - Parameter advice: what to do about a file with something else in it.
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
        hint: "chmod 600 \(entry.text), and take new keys if others have been there")
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
      // Entries hold no text that is not a value, and a test reads every default.
      return nil
    }
  }
}
