/// The environment variables of keys: `listen.port` is `SALLYPORT_LISTEN__PORT`, and the upstream of the first route
/// is `SALLYPORT_ROUTES__0__UPSTREAM`.
enum EnvironmentName {
  static let prefix = "SALLYPORT_"
  static let separator = "__"

  static func variable(for path: SettingPath) -> String {
    var indices = path.indices[...]
    let words = path.steps.map { $0 == "[]" ? String(indices.popFirst() ?? 0) : $0.uppercased() }
    return prefix + words.joined(separator: separator)
  }

  /// The path of `variable`; `nil` if the name does not have the form of `variable(for:)`.
  static func path(of variable: String) -> SettingPath? {
    guard variable.hasPrefix(prefix), variable == variable.uppercased() else { return nil }
    var path = SettingPath.root
    for word in variable.dropFirst(prefix.count).split(separator: separator, omittingEmptySubsequences: false) {
      guard !word.isEmpty else { return nil }
      if let index = Digits.value(of: word) { path = path[index] } else { path = path[word.lowercased()] }
    }
    return path
  }
}
