/// The place that a value, or a fault in it, comes from.
public enum BackendSettingSource: Sendable, Hashable, CustomStringConvertible {
  /// A place in the file. Line and column count from 1.
  case file(String, line: Int, column: Int)
  /// An environment variable, by its name.
  case environment(String)
  /// A command-line flag, by its name with dashes.
  case flag(String)
  /// No place: the value is missing.
  case nowhere

  /// The order of the layers: one with a higher rank overrides the others.
  var rank: Int {
    switch self {
    case .nowhere: 0
    case .file: 1
    case .environment: 2
    case .flag: 3
    }
  }

  /// The place as text: `mfa.yaml:3:9`, `MFA_BACKEND_LISTEN` or `--listen`; empty for `nowhere`.
  public var description: String {
    switch self {
    case .file(let name, let line, let column): "\(name):\(line):\(column)"
    case .environment(let name): name
    case .flag(let name): name
    case .nowhere: ""
    }
  }
}

/// One fault in the settings.
public struct SettingsError: Sendable, Hashable, CustomStringConvertible {
  /// The place of the fault.
  public let origin: BackendSettingSource
  /// The key as written in the file; `nil` if the fault is not about one key.
  public let key: String?
  /// What is wrong with the value, without place and key.
  public let reason: String
  /// What to do; `nil` for a fault that a look at the reference or at the file explains.
  public let hint: String?

  public init(_ origin: BackendSettingSource, _ key: String?, _ reason: String, hint: String? = nil) {
    self.origin = origin
    self.key = key
    self.reason = reason
    self.hint = hint
  }

  /// The fault as `file:line:col: key: reason`, on one line.
  public var description: String {
    let place = "\(origin)"
    return [place.isEmpty ? nil : place, key, reason].compactMap(\.self).joined(separator: ": ")
  }
}

/// All faults in the settings; never empty.
public struct SettingsErrors: Error, Sendable, Hashable, CustomStringConvertible {
  /// The faults, in the order of the layers.
  public let faults: [SettingsError]

  public init(_ faults: [SettingsError]) { self.faults = faults }

  /// One line `error: …` for each fault.
  public var description: String { faults.map { "error: \($0)" }.joined(separator: "\n") }
}
