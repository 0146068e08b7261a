internal import ConfigurationEngine

extension SettingsBuilder {
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
}
