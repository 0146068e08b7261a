/// A value from one configuration layer.
public struct Entry: Sendable, Hashable {
  public let text: String
  public let origin: SettingSource
}

/// The values of one layer, or of several merged layers, by path.
///
/// All values are valid for the kinds of their keys; invalid texts are recorded as faults.
public struct Entries: Sendable {
  public private(set) var values: [SettingPath: Entry] = [:]
  /// The given sections and lists, including empty ones.
  public private(set) var containers: [SettingPath: SettingSource] = [:]
  /// Keys with an invalid value. They are not reported as missing as well.
  public private(set) var faulty: Set<SettingPath> = []
  public private(set) var faults: [ConfigurationError] = []
  /// The indices of the given elements of each list.
  private var elements: [SettingPath: Set<Int>] = [:]
  /// The names of the given entries of each section that lets the file choose them, with their place in its order.
  private var names: [SettingPath: [String: Int]] = [:]
  /// The defaults that depend on the environment, set even if the configuration gives another value.
  public private(set) var computedDefaults: [SettingPath: String] = [:]

  public init() {}

  /// Sets `path` to `text` if the text is valid; records a fault otherwise. Relative paths start from `folder`.
  public mutating func take(
    _ text: String, for path: SettingPath, _ key: KeyDefinition, from origin: SettingSource, in folder: String
  ) {
    let problem = text.isEmpty && !key.takesEmpty ? InvalidSetting("value is empty") : key.problem(text)
    if let problem {
      faulty.insert(path)
      faults.append(ConfigurationError(origin, path.text, problem.reason, suggestion: problem.suggestion))
    } else {
      values[path] = Entry(text: key.placed(text, in: folder), origin: origin)
    }
    noteElements(path)
    note(path.parent, from: origin)
  }

  /// Sets `path` to a default that depends on the environment, unless the configuration gives a value.
  public mutating func takeDefault(_ text: String, for path: SettingPath, _ key: KeyDefinition) {
    computedDefaults[path] = text
    guard values[path] == nil, !isFaulty(path) else { return }
    take(text, for: path, key, from: .standard, in: "/")
  }

  /// Records that `path` and all its parents were given.
  mutating func note(_ path: SettingPath, from origin: SettingSource) {
    noteElements(path)
    var path = path
    while containers[path] == nil, !path.steps.isEmpty {
      containers[path] = origin
      path = path.parent
    }
  }

  /// Records the origin of the configuration as a whole.
  mutating func noteRoot(from origin: SettingSource) { containers[.root] = origin }

  /// Records a fault that concerns no single value.
  public mutating func refuse(_ fault: ConfigurationError) { faults.append(fault) }

  mutating func markFaulty(_ path: SettingPath) {
    noteElements(path)
    faulty.insert(path)
  }

  /// Records the list elements and the named entries that `path` leads through.
  private mutating func noteElements(_ path: SettingPath) {
    var path = path
    while let last = path.steps.last {
      let parent = path.parent
      if last == "[]", let index = path.indices.last { elements[parent, default: []].insert(index) }
      if last == "*", let name = path.names.last, names[parent]?[name] == nil {
        names[parent, default: [:]][name] = names[parent]?.count ?? 0
      }
      path = parent
    }
  }

  /// Refuses a whole file. Its settings are unknown, so none of them is reported as missing.
  mutating func refuseFile(_ fault: ConfigurationError) {
    refuse(fault)
    markFaulty(.root)
  }

  /// Merges `layer` over these entries: its values win, and the faults of both are kept.
  public mutating func overlay(_ layer: Entries) {
    values.merge(layer.values) { _, upper in upper }
    containers.merge(layer.containers) { lower, _ in lower }
    faulty.formUnion(layer.faulty)
    elements.merge(layer.elements) { $0.union($1) }
    names.merge(layer.names) { $0.merging($1) { lower, _ in lower } }
    faults += layer.faults
  }

  /// Removes the value, section or list at `path` with all that is below it. Faults that were recorded stay.
  public mutating func remove(_ path: SettingPath) {
    values = values.filter { !$0.key.isPart(of: path) }
    containers = containers.filter { !$0.key.isPart(of: path) }
    elements = elements.filter { !$0.key.isPart(of: path) }
    names = names.filter { !$0.key.isPart(of: path) }
  }

  /// Whether a fault was recorded for `path` or one of its parents, including the root.
  public func isFaulty(_ path: SettingPath) -> Bool {
    if faulty.contains(.root) { return true }
    var path = path
    while !path.steps.isEmpty {
      if faulty.contains(path) { return true }
      path = path.parent
    }
    return false
  }

  /// The origin of `path`, or of its nearest given parent.
  public func nearestOrigin(of path: SettingPath) -> SettingSource {
    var path = path
    while !path.steps.isEmpty {
      if let origin = values[path]?.origin ?? containers[path] { return origin }
      path = path.parent
    }
    return containers[.root] ?? .standard
  }

  /// The indices of the given elements of the list at `path`, in ascending order.
  public func indices(of path: SettingPath) -> [Int] { (elements[path] ?? []).sorted() }

  /// The names of the given entries of the section at `path`, in the order of the file.
  public func names(of path: SettingPath) -> [String] {
    (names[path] ?? [:]).sorted { $0.value < $1.value }.map(\.key)
  }

  /// Whether the configuration gives the value, section or list at `path`, be it faulty.
  public func isGiven(_ path: SettingPath) -> Bool {
    values[path] != nil || containers[path] != nil || faulty.contains(path)
  }
}
