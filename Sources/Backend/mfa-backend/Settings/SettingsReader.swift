public import ConfigurationEngine
public import Foundation

/// Reads the backend's configuration. Flags override the environment, which overrides `.env`, which overrides the
/// file, which overrides the defaults.
///
/// Reports all faults together. Its only side effect is to read the file and `.env`.
public struct SettingsReader: Sendable {
  private let layers: SettingsLayers

  /// The environment variable that names the configuration file. It is not a setting.
  static let fileVariable = "MFA_BACKEND_CONFIG"

  /// Creates a reader.
  ///
  /// - Parameters:
  ///   - file: The path of the YAML file; `nil` for none.
  ///   - workingDirectory: The folder of `.env`, and the base of relative paths in flags and variables.
  public init(
    file: String?, environment: [String: String], flags: [FlagSetting],
    workingDirectory: String = FileManager.default.currentDirectoryPath
  ) {
    layers = SettingsLayers(
      file: file, flags: flags, environment: environment, workingDirectory: workingDirectory)
  }

  /// The path of the file; `nil` for none.
  public var file: String? { layers.file }

  /// Reads the settings of the server.
  ///
  /// - Throws: `ConfigurationErrors` with all faults.
  public func read() throws(ConfigurationErrors) -> BackendSettings {
    let diagnostics = examine()
    guard let settings = diagnostics.settings else { throw ConfigurationErrors(faults: diagnostics.faults) }
    return settings
  }

  /// Reads the settings of the server with everything that a check shows. Never throws: faults are part of the result.
  public func examine() -> ConfigurationDiagnostics<BackendSettings> {
    let (reading, builder) = readLayers()
    var assembly = builder
    let settings = assembly.settings()
    let faults = assembly.faults(besides: reading.dotenvFaults).map(\.hinted)
    let effective = assembly.effectiveValues()
    let own = (settings?.warnings ?? []).map { key, text in
      Warning(effective.first { $0.key == key }?.origin ?? .standard, key, text)
    }
    return ConfigurationDiagnostics(
      settings: faults.isEmpty ? settings : nil, faults: faults,
      warnings: reading.warnings + assembly.warnings + own, effective: effective)
  }

  /// Reads the database settings only, for commands that need nothing else. Other required settings may be missing.
  ///
  /// - Parameter needsKeys: Whether `keys_file` is required.
  /// - Throws: `ConfigurationErrors` with all faults.
  public func readDatabase(needsKeys: Bool = true) throws(ConfigurationErrors) -> BackendSettings.Database {
    let (reading, builder) = readLayers()
    var assembly = builder
    let database = assembly.database(needsKeys: needsKeys)
    let faults = assembly.faults(besides: reading.dotenvFaults).map(\.hinted)
    guard faults.isEmpty, let database else { throw ConfigurationErrors(faults: faults) }
    return database
  }

  /// Reads the operators' socket only. Faults of other settings are ignored: `reload` must reach the backend, which
  /// reports them.
  ///
  /// - Throws: `ConfigurationErrors`, also if the socket is not set.
  public func readAdmin() throws(ConfigurationErrors) -> BackendSettings.AdminSocket {
    let (reading, builder) = readLayers()
    var assembly = builder
    let admin = assembly.required(Keys.adminListen)
    let faults = assembly.faults(besides: reading.dotenvFaults, of: [Keys.adminListen.definition.pattern])
    guard faults.isEmpty, let admin else { throw ConfigurationErrors(faults: faults) }
    return admin
  }

  /// Whether the operators' socket is set. Faults of other settings are ignored.
  ///
  /// - Throws: `ConfigurationErrors` if the file cannot be read or is not YAML.
  public func namesAdmin() throws(ConfigurationErrors) -> Bool {
    let (reading, builder) = readLayers()
    let faults = builder.faults(besides: reading.dotenvFaults, of: [Keys.adminListen.definition.pattern])
    guard faults.isEmpty else { throw ConfigurationErrors(faults: faults) }
    return builder.isGiven(Keys.adminListen)
  }

  /// Reads only the settings for `console --serve`. Faults of other settings are ignored.
  ///
  /// - Returns: `nil` if the console is off.
  /// - Throws: `ConfigurationErrors` with the faults of these settings.
  public func readConsole() throws(ConfigurationErrors) -> ConsolePlaces? {
    let (reading, builder) = readLayers()
    var assembly = builder
    let console = assembly.console(hasAdminServer: assembly.isGiven(Keys.adminListen))
    let (admin, logLevel) = (assembly.value(Keys.adminListen), assembly.value(Keys.logLevel))
    let sections = ["admin", Keys.logLevel.definition.pattern]
    let faults = assembly.faults(besides: reading.dotenvFaults, of: sections).map(\.hinted)
    guard faults.isEmpty, let logLevel else { throw ConfigurationErrors(faults: faults) }
    guard let console, let admin else { return nil }
    return ConsolePlaces(console: console, admin: admin, logLevel: logLevel)
  }

  private func readLayers() -> (reading: SettingsLayers.Reading, builder: SettingsBuilder) {
    var reading = layers.read(.backend, fileNamedBy: Self.fileVariable)
    reading.entries.addCredentials(of: .backend, environment: layers.environment)
    return (reading, SettingsBuilder(reading.entries, .backend))
  }
}

/// The settings for the console over TLS.
public struct ConsolePlaces: Sendable, Hashable {
  public let console: ConsoleSettings
  public let admin: BackendSettings.AdminSocket
  public let logLevel: String
}

extension BackendSettings {
  /// What is allowed and should be known, by key.
  fileprivate var warnings: [(key: String, text: String)] {
    var warnings: [(String, String)] = []
    if texting == .log {
      warnings.append(("sms.sink", "codes are written to the log: a reader of the log can sign in"))
    }
    if database == .ephemeral { warnings.append(("database", "all data is lost when the backend exits")) }
    if audit.syslog?.isExposed == true {
      warnings.append(
        ("audit.syslog", "names of accounts cross the network unencrypted: use tls, or a receiver on this machine"))
    }
    if gate.authorityFile != nil, !gate.keys.lowercased().hasPrefix("https://") {
      warnings.append(("gate.ca_file", "has no effect: gate.jwks is no https URL, so no certificate is verified"))
    }
    if admin == nil {
      warnings.append(("admin.listen", "not set: status, reload and drain cannot reach the backend"))
    }
    return warnings
  }
}

extension ConfigurationError {
  /// The fault with a hint where to look, if it has none.
  fileprivate var hinted: ConfigurationError {
    let general =
      switch origin {
      case .dotenv(_, let variable) where key == nil || key == variable:
        "correct .env in the current folder, or start the program in another one"
      case _ where key == nil: "correct the file, or name another one with -c"
      default: "mfa-backend check --reference lists every key with its values"
      }
    return ConfigurationError(origin, key, reason, suggestion: suggestion, hint: hint ?? general)
  }
}

extension ConfigurationSearch {
  /// The search for the backend's configuration: `MFA_BACKEND_CONFIG`, otherwise `/etc/mfa/mfa.yaml`.
  public static func ofBackend(_ environment: [String: String]) -> ConfigurationSearch {
    ConfigurationSearch(
      variable: SettingsReader.fileVariable, standard: "/etc/mfa/mfa.yaml", environment: environment)
  }
}
