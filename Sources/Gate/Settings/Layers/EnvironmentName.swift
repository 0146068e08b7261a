/// How keys are written as environment variables: `listen.port` is `SALLYPORT_LISTEN__PORT`, the upstream of the first
/// route is `SALLYPORT_ROUTES__0__UPSTREAM`.
enum EnvironmentName {
  static let prefix = "SALLYPORT_"
  static let separator = "__"

  static func variable(for path: SettingPath) -> String {
    var indices = path.indices[...]
    let words = path.steps.map { $0 == "[]" ? String(indices.popFirst() ?? 0) : $0.uppercased() }
    return prefix + words.joined(separator: separator)
  }

  /// The path that `variable` names; `nil` unless it is written in the way of `variable(for:)`.
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
