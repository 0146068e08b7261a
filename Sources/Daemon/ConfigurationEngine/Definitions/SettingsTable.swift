internal import ByteCoding

/// The settings of one program, and their names in the environment.
///
/// The grammar of the file, environment variables, suggestions, the JSON Schema, the example and the reference all
/// follow from it.
public struct SettingsTable: Sendable {
  /// How an empty environment variable counts.
  public enum EmptyVariables: Sendable {
    /// As a faulty value.
    case refused
    /// As a variable that is not set.
    case unset
  }

  /// Every key, in the order of the documentation.
  public let keys: [KeyDefinition]
  /// The name of the program: `sallyport`.
  public let program: String
  /// The start of the name of each environment variable: `SALLYPORT_`.
  public let variablePrefix: String
  /// The start of a valid file, for the fault of a file without keys: `listen: { port: 6200 }`.
  public let sample: String
  let emptyVariables: EmptyVariables
  /// Whether a variable with the prefix that sets no key is someone else's, and therefore no fault.
  let isForeign: @Sendable (_ variable: String) -> Bool

  private let byPattern: [String: KeyDefinition]

  /// - Parameter isForeign: Whether others define an unknown variable with this prefix, such as a container network
  ///   for a service that has the program's name. Any other one is a fault.
  public init(
    _ keys: [KeyDefinition], of program: String, variablePrefix: String, sample: String,
    emptyVariables: EmptyVariables, isForeign: @escaping @Sendable (_ variable: String) -> Bool
  ) {
    self.keys = keys
    self.program = program
    self.variablePrefix = variablePrefix
    self.sample = sample
    self.emptyVariables = emptyVariables
    self.isForeign = isForeign
    byPattern = Dictionary(keys.map { ($0.pattern, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// What the table defines at a path.
  public enum Shape: Sendable {
    case value(KeyDefinition)
    case list
    case section
    case unknown
  }

  /// What is at `path`, whatever its indices are.
  public func shape(of path: SettingPath) -> Shape {
    let pattern = path.pattern
    if let key = byPattern[pattern] { return .value(key) }
    if pattern.isEmpty || keys.contains(where: { $0.pattern.hasPrefix(pattern + ".") }) { return .section }
    return keys.contains { $0.pattern.hasPrefix(pattern + "[]") } ? .list : .unknown
  }

  /// Whether the list at `path` has sections as elements, rather than values.
  func hasSections(in path: SettingPath) -> Bool { keys.contains { $0.pattern.hasPrefix(path.pattern + "[].") } }

  /// Whether the file chooses the names of the entries of the section at `path`.
  func hasNames(in path: SettingPath) -> Bool {
    let start = path.pattern + ".*"
    return keys.contains { $0.pattern.hasPrefix(start) }
  }

  /// Returns the key that was probably meant by an unknown one: a similar key of the same section, a key with the
  /// same name elsewhere, or a similar path.
  func suggestion(for path: SettingPath) -> String? {
    // No key is as long, and to measure the distance of a long text takes seconds.
    guard path.text.utf8.count <= 200 else { return nil }
    let section = path.parent
    let prefix = section.pattern.isEmpty ? "" : section.pattern + "."
    let siblings = Set(
      keys.map(\.pattern).filter { $0.hasPrefix(prefix) }
        .compactMap { $0.dropFirst(prefix.count).split(whereSeparator: { ".[".contains($0) }).first.map(String.init) })
    if let sibling = Suggestions.nearest(to: path.last, in: siblings.sorted()) { return section[sibling].text }
    let available = keys.map { SettingPath(pattern: $0.pattern, indices: path.indices, names: path.names) }
    if let same = available.first(where: { $0.last == path.last }) { return same.text }
    // Those of the same section are not near: a long path would allow for more errors than the key itself.
    return Suggestions.nearest(to: path.text, in: available.filter { $0.parent != section }.map(\.text))
  }
}

/// The environment variables of keys: `listen.port` is `SALLYPORT_LISTEN__PORT`, and the upstream of the first route
/// is `SALLYPORT_ROUTES__0__UPSTREAM`.
extension SettingsTable {
  static let separator = "__"

  /// The environment variable that sets `key`, in the first element of a list.
  public func variable(of key: KeyDefinition) -> String {
    variable(for: SettingPath(pattern: key.pattern, indices: []))
  }

  /// The environment variable that sets the key at `path`.
  public func variable(for path: SettingPath) -> String {
    var indices = path.indices[...]
    let words = path.steps.map { $0 == "[]" ? String(indices.popFirst() ?? 0) : $0.uppercased() }
    return variablePrefix + words.joined(separator: Self.separator)
  }

  /// The path that `variable` sets; `nil` if the name does not have the form of `variable(for:)`.
  public func path(of variable: String) -> SettingPath? {
    guard variable.hasPrefix(variablePrefix), variable == variable.uppercased() else { return nil }
    var path = SettingPath.root
    let words = variable.dropFirst(variablePrefix.count)
    for word in words.split(separator: Self.separator, omittingEmptySubsequences: false) {
      guard !word.isEmpty else { return nil }
      if let index = Digits.value(of: word) { path = path[index] } else { path = path[word.lowercased()] }
    }
    return path
  }
}
