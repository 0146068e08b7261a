/// Where a value, or a fault in one, comes from.
public enum BackendSettingSource: Sendable, Hashable, CustomStringConvertible {
  /// A place in the file; line and column count from 1.
  case file(String, line: Int, column: Int)
  case environment(String)
  case flag(String)
  /// The setting is absent.
  case nowhere

  /// `mfa.yaml:3:9`, `MFA_BACKEND_LISTEN`, `--listen`; empty where there is none.
  public var description: String {
    switch self {
    case .file(let name, let line, let column): "\(name):\(line):\(column)"
    case .environment(let name): name
    case .flag(let name): name
    case .nowhere: ""
    }
  }
}

/// One thing that is wrong in the settings.
public struct SettingsFault: Sendable, Hashable, CustomStringConvertible {
  public let origin: BackendSettingSource
  /// As the file writes it; `nil` where no key was reached.
  public let key: String?
  public let reason: String

  public init(_ origin: BackendSettingSource, _ key: String?, _ reason: String) {
    self.origin = origin
    self.key = key
    self.reason = reason
  }

  /// `file:line:col: key: reason`, on one line.
  public var description: String {
    let place = "\(origin)"
    return [place.isEmpty ? nil : place, key, reason].compactMap(\.self).joined(separator: ": ")
  }
}

/// Everything that is wrong in the settings; never empty.
public struct SettingsFaults: Error, Sendable, Hashable, CustomStringConvertible {
  public let faults: [SettingsFault]

  public init(_ faults: [SettingsFault]) { self.faults = faults }

  /// A line for each.
  public var description: String { faults.map { "error: \($0)" }.joined(separator: "\n") }
}
