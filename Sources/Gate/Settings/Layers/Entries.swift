/// A value as one layer gives it.
struct Entry: Sendable, Hashable {
  let text: String
  let origin: SettingSource
}

/// What one layer, or all of them together, say: texts by the path of their key.
///
/// Every text in it is a value of its key's kind; what was not is among the faults.
struct Entries: Sendable {
  private(set) var values: [SettingPath: Entry] = [:]
  /// Sections and lists that were given, empty ones included.
  private(set) var containers: [SettingPath: SettingSource] = [:]
  /// Keys that were given a text that is not a value: not to be missed a second time.
  private(set) var faulty: Set<SettingPath> = []
  private(set) var faults: [Fault] = []
  /// The store of a gate that is told of none, whether or not it was told of one.
  var standardStore = ""

  /// Takes `text` as the value of `path` if it is one. `folder` is what a relative path starts from.
  mutating func take(
    _ text: String, for path: SettingPath, _ key: KeyDefinition, from origin: SettingSource, in folder: String
  ) {
    let misfit = text.isEmpty ? InvalidSetting("has no value") : key.misfit(text)
    if let misfit {
      faulty.insert(path)
      faults.append(Fault(origin, path.text, misfit.reason, suggestion: misfit.suggestion))
    } else {
      values[path] = Entry(text: key.isPath ? FilePath.absolute(text, in: folder) : text, origin: origin)
    }
    note(path.parent, from: origin)
  }

  /// Says that there is something at `path`, and so at everything above it.
  mutating func note(_ path: SettingPath, from origin: SettingSource) {
    var path = path
    while containers[path] == nil, !path.steps.isEmpty {
      containers[path] = origin
      path = path.parent
    }
  }

  /// Says where the configuration as a whole stands.
  mutating func noteRoot(from origin: SettingSource) { containers[.root] = origin }

  mutating func refuse(_ fault: Fault) { faults.append(fault) }

  mutating func markFaulty(_ path: SettingPath) { faulty.insert(path) }

  /// Refuses a whole file: what it would have said is not known, and so nothing in it is missing.
  mutating func refuseFile(_ fault: Fault) {
    refuse(fault)
    markFaulty(.root)
  }

  /// Puts `layer` over what is here: its values win, faults of both count.
  mutating func overlay(_ layer: Entries) {
    values.merge(layer.values) { _, upper in upper }
    containers.merge(layer.containers) { lower, _ in lower }
    faulty.formUnion(layer.faulty)
    faults += layer.faults
  }

  /// Whether something at `path`, or above it, was refused; the root is above everything.
  func isFaulty(_ path: SettingPath) -> Bool {
    if faulty.contains(.root) { return true }
    var path = path
    while !path.steps.isEmpty {
      if faulty.contains(path) { return true }
      path = path.parent
    }
    return false
  }

  /// Where `path`, or what is nearest above it, was given.
  func nearestOrigin(of path: SettingPath) -> SettingSource {
    var path = path
    while !path.steps.isEmpty {
      if let origin = values[path]?.origin ?? containers[path] { return origin }
      path = path.parent
    }
    return containers[.root] ?? .standard
  }

  /// The indices of the elements that the list at `path` was given, in order.
  func indices(of path: SettingPath) -> [Int] {
    let depth = path.steps.count
    let below = Array(values.keys) + Array(containers.keys) + Array(faulty)
    let indices = below.compactMap { candidate -> Int? in
      guard candidate.steps.count > depth, candidate.steps[depth] == "[]" else { return nil }
      guard candidate.steps[..<depth] == path.steps[...], candidate.indices.starts(with: path.indices) else {
        return nil
      }
      return candidate.indices[path.indices.count]
    }
    return Set(indices).sorted()
  }
}
