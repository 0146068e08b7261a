/// Where a setting, or a fault in one, comes from.
public enum SettingSource: Sendable, Hashable {
  /// Not configured: the default of the table, or nothing.
  case standard
  /// A place in the configuration file; line and column count from 1, columns in Unicode scalars.
  case file(String, line: Int, column: Int)
  /// A line of `.env`, and the variable that it sets.
  case dotenv(line: Int, variable: String)
  /// An environment variable.
  case environment(String)
  /// A flag of the command line, with its dashes.
  case flag(String)
  /// A file in `$CREDENTIALS_DIRECTORY` (systemd's `LoadCredential=`).
  case credential(String)
}

extension SettingSource: CustomStringConvertible {
  /// `gate.yaml:3:9`, `.env:2`, `SALLYPORT_LISTEN__PORT`, `--port`; empty for a default.
  public var description: String {
    switch self {
    case .standard: ""
    case .file(let name, let line, let column): "\(name):\(line):\(column)"
    case .dotenv(let line, _): ".env:\(line)"
    case .environment(let variable): variable
    case .flag(let flag): flag
    case .credential(let path): path
    }
  }

  /// Faults are told in the order of the file, then of `.env`, then of variables and flags.
  var rank: (Int, Int, Int, String) {
    switch self {
    case .file(let name, let line, let column): (0, line, column, name)
    case .standard: (1, 0, 0, "")
    case .dotenv(let line, let variable): (2, line, 0, variable)
    case .environment(let variable): (3, 0, 0, variable)
    case .flag(let flag): (4, 0, 0, flag)
    case .credential(let path): (5, 0, 0, path)
    }
  }
}
