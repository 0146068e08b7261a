/// The origin of a setting or of a fault.
public enum SettingSource: Sendable, Hashable {
  /// The default of the table, or no origin.
  case standard
  /// A position in the configuration file. Lines and columns count from 1; columns are Unicode scalars.
  case file(String, line: Int, column: Int)
  /// A line of `.env` and the variable that it sets.
  case dotenv(line: Int, variable: String)
  /// An environment variable.
  case environment(String)
  /// A command-line flag, with its dashes.
  case flag(String)
  /// A file in `$CREDENTIALS_DIRECTORY` (systemd's `LoadCredential=`).
  case credential(String)
}

extension SettingSource: CustomStringConvertible {
  /// For example `gate.yaml:3:9`, `.env:2`, `SALLYPORT_LISTEN__PORT` or `--port`; empty for a default.
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

  /// The layers, from the lowest: a value of a higher one overrides those of lower ones.
  public enum Layer: Int, Sendable, Comparable {
    case standard, credential, file, dotenv, environment, flag

    public static func < (lower: Layer, upper: Layer) -> Bool { lower.rawValue < upper.rawValue }
  }

  public var layer: Layer {
    switch self {
    case .standard: .standard
    case .credential: .credential
    case .file: .file
    case .dotenv: .dotenv
    case .environment: .environment
    case .flag: .flag
    }
  }

  /// The order of faults: the file, `.env`, environment variables, flags.
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
