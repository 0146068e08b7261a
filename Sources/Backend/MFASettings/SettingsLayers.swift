internal import ByteCoding
internal import YAMLSource

/// A value from one of the layers, with its place.
struct GivenValue: Sendable, Hashable {
  var text: String
  let origin: BackendSettingSource
}

/// One layer of the settings: its values by key, and its faults.
struct SettingsLayer: Sendable {
  private(set) var values: [String: GivenValue] = [:]
  private(set) var faults: [SettingsError] = []

  mutating func refuse(_ origin: BackendSettingSource, _ key: String?, _ reason: String) {
    faults.append(SettingsError(origin, key, reason))
  }

  /// Stores a value if it is valid, otherwise records the fault. A relative path starts at `folder`.
  mutating func take(_ text: String, for key: SettingKey, from origin: BackendSettingSource, in folder: String?) {
    if let problem = key.problem(text) { return refuse(origin, key.path, problem) }
    values[key.path] = GivenValue(text: key.placed(text, in: folder), origin: origin)
  }

  /// Merges `upper` into this layer. Values of `upper` win.
  mutating func overlay(_ upper: SettingsLayer) {
    values.merge(upper.values) { _, upper in upper }
    faults += upper.faults
  }
}

extension SettingKey {
  fileprivate func placed(_ text: String, in folder: String?) -> String {
    let isPath = kind == .file || (kind == .fileOrURL && !text.contains("://"))
    guard isPath, let folder, !text.hasPrefix("/") else { return text }
    return "\(folder)/\(text)"
  }
}

extension SettingsLayer {
  /// Reads the YAML `text` of the file `name`.
  ///
  /// - Throws: the fault of a text that is not YAML.
  init(yaml text: String, of name: String) throws(SettingsErrors) {
    let folder = name.lastIndex(of: "/").map { String(name[..<$0]) }
    do throws(YAMLDocument.Malformed) {
      let root = try YAMLDocument.parse(text)
      switch root.content {
      case .empty: break
      case .section(let members): take(members, below: "", of: name, in: folder)
      case .scalar, .list:
        refuse(Self.place(root.position, name), nil, "the file must contain keys, such as listen: 127.0.0.1:8080")
      }
    } catch {
      throw SettingsErrors([SettingsError(Self.place(error.position, name), nil, error.reason)])
    }
  }

  private static func place(_ position: YAMLDocument.Position, _ name: String) -> BackendSettingSource {
    .file(name, line: position.line, column: position.column)
  }

  private mutating func take(
    _ members: [YAMLDocument.Member], below section: String, of name: String, in folder: String?
  ) {
    var seen: [String: Int] = [:]
    for member in members {
      let origin = Self.place(member.position, name)
      guard let word = member.key, !word.isEmpty else {
        refuse(origin, section.isEmpty ? nil : section, "a key must be a word")
        continue
      }
      let path = section.isEmpty ? word : "\(section).\(word)"
      if let line = seen[word] {
        refuse(origin, path, "set twice, first in line \(line)")
        continue
      }
      seen[word] = member.position.line
      take(member.value, at: path, from: origin, of: name, in: folder)
    }
  }

  private mutating func take(
    _ node: YAMLDocument.Node, at path: String, from start: BackendSettingSource, of name: String, in folder: String?
  ) {
    let key = SettingKey.at(path)
    switch (node.content, key) {
    case (.scalar(let text), let key?): take(text, for: key, from: Self.place(node.position, name), in: folder)
    case (.empty, _?): refuse(start, path, "has no value")
    case (.list, _?), (.section, _?): refuse(start, path, "must be a single value")
    case (.section(let members), nil) where SettingKey.isSection(path):
      take(members, below: path, of: name, in: folder)
    case (.empty, nil) where SettingKey.isSection(path): break
    case (.scalar, nil) where SettingKey.isSection(path), (.list, nil) where SettingKey.isSection(path):
      refuse(start, path, "must contain keys")
    case (_, nil): refuse(start, path, Self.reasonOfUnknownKey(path))
    }
  }

  /// Suggests a key of the same section.
  private static func reasonOfUnknownKey(_ path: String) -> String {
    let words = path.split(separator: ".")
    let siblings: [String] = SettingKey.all.compactMap { key in
      let other = key.path.split(separator: ".")
      guard other.count >= words.count, other.starts(with: words.dropLast()) else { return nil }
      return String(other[words.count - 1])
    }
    let meant = Suggestions.nearest(to: words.last ?? "", in: siblings)
    return "unknown key" + (meant.map { " (did you mean \($0))" } ?? "")
  }

  /// Reads the variables that begin with `MFA_BACKEND_`. An empty variable counts as unset.
  ///
  /// Container networks define variables for a service with the backend's name (`MFA_BACKEND_PORT`,
  /// `MFA_BACKEND_SERVICE_HOST`); those are ignored. Every other unknown name is refused as a probable mistake.
  init(environment: [String: String]) {
    for (name, text) in environment.sorted(by: { $0.key < $1.key })
    where name.hasPrefix(SettingKey.prefix) && name != SettingKey.fileVariable && !text.isEmpty {
      guard let key = SettingKey.all.first(where: { $0.variable == name }) else {
        if !Self.isOfContainers(name) { refuse(.environment(name), nil, Self.reasonOfUnknown(name)) }
        continue
      }
      take(text, for: key, from: .environment(name), in: nil)
    }
  }

  /// Whether a container network defines such a name: Kubernetes for a service called `mfa-backend` or
  /// `mfa-backend-…`, Docker for a link to one.
  private static func isOfContainers(_ name: String) -> Bool {
    let words = name.dropFirst(SettingKey.prefix.count).split(separator: "_", omittingEmptySubsequences: false)
    guard !words.contains("") else { return false }
    let hasPort = words.contains("PORT") && (words.last == "PORT" || words.contains { $0 == "TCP" || $0 == "UDP" })
    let isService = zip(words, words.dropFirst()).contains { $0 == "SERVICE" && ($1 == "HOST" || $1 == "PORT") }
    return hasPort || isService || words == ["NAME"] || words.first == "ENV"
  }

  private static func reasonOfUnknown(_ name: String) -> String {
    let words = SettingKey.all.map { String($0.variable.dropFirst(SettingKey.prefix.count)) }
    let meant = Suggestions.nearest(to: name.dropFirst(SettingKey.prefix.count), in: words)
    return "unknown variable" + (meant.map { " (did you mean \(SettingKey.prefix)\($0))" } ?? "")
  }

  /// Reads the command-line flags.
  init(flags: [SettingFlag]) {
    for flag in flags {
      guard let key = SettingKey.at(flag.key) else {
        refuse(.flag(flag.name), flag.key, "unknown key")
        continue
      }
      take(flag.text, for: key, from: .flag(flag.name), in: nil)
    }
  }
}

/// A setting from the command line.
public struct SettingFlag: Sendable, Hashable {
  /// The flag, with its dashes.
  public let name: String
  /// The key of the setting.
  public let key: String
  /// The value.
  public let text: String

  /// Creates the setting; `nil` if the flag was not given.
  public init?(_ name: String, _ key: String, _ text: String?) {
    guard let text else { return nil }
    self.name = name
    self.key = key
    self.text = text
  }
}
