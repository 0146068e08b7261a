public import ConfigurationEngine
#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Reads a gate's configuration. Flags override the environment, which overrides the file, which overrides defaults.
///
/// Loading only reads files; it has no side effects.
public struct SettingsLoader: Sendable {
  /// The configuration file; `nil` for none.
  public var file: String?
  public var flags: [FlagSetting]
  public var environment: [String: String]
  /// The folder of `.env`, and the base of relative paths in flags and variables. An absolute path.
  public var workingDirectory: String

  public init(
    file: String?, flags: [FlagSetting] = [], environment: [String: String] = ProcessInfo.processInfo.environment,
    workingDirectory: String = FileManager.default.currentDirectoryPath
  ) {
    self.file = file
    self.flags = flags
    self.environment = environment
    self.workingDirectory = workingDirectory
  }

  /// Returns the settings.
  /// - Throws: `ConfigurationErrors` with every fault.
  public func load() throws(ConfigurationErrors) -> GateSettings {
    let diagnostics = examine()
    guard let settings = diagnostics.settings else { throw ConfigurationErrors(faults: diagnostics.faults) }
    return settings
  }

  /// Returns the settings with all faults and warnings, whether or not the configuration is valid.
  public func examine() -> ConfigurationDiagnostics<GateSettings> {
    let (reading, builder) = readLayers()
    var assembly = builder
    let settings = assembly.settings(warnings: reading.warnings)
    let faults = assembly.faults(besides: reading.dotenvFaults)
    return ConfigurationDiagnostics(
      settings: faults.isEmpty ? settings : nil, faults: faults, warnings: reading.warnings + assembly.warnings,
      effective: settings?.effective ?? assembly.effectiveValues())
  }

  /// Reads all layers, and adds defaults that depend on the environment.
  func readLayers() -> (reading: SettingsLayers.Reading, builder: SettingsBuilder) {
    var reading = layers.read(.gate, fileNamedBy: Self.fileVariable)
    let (entries, warnings) = Aliases.resolve(reading.variables, in: workingDirectory, over: reading.entries)
    reading.entries = entries
    reading.warnings = warnings + reading.warnings
    reading.entries.addCredentials(of: .gate, environment: environment)
    if let warning = DefaultResolution.addRoute(to: &reading.entries) { reading.warnings.append(warning) }
    DefaultResolution.addStore(to: &reading.entries, environment: environment, isRoot: FileContent.isRoot)
    return (reading, SettingsBuilder(reading.entries, .gate))
  }

  /// The values of the file alone. Faults are among them.
  func readFile() -> Entries { layers.readFile(.gate, namedBy: Self.fileVariable) }

  /// The environment variable that names a configuration file.
  static let fileVariable = "SALLYPORT_CONFIG"

  private var layers: SettingsLayers {
    SettingsLayers(file: file, flags: flags, environment: environment, workingDirectory: workingDirectory)
  }
}

extension ConfigurationSearch {
  /// The search for the gate's configuration: `SALLYPORT_CONFIG`, otherwise `/etc/sallyport/sallyport.yaml`.
  public init(environment: [String: String]) {
    self.init(
      variable: SettingsLoader.fileVariable, standard: "/etc/sallyport/sallyport.yaml", environment: environment)
  }
}
