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
  public func examine() -> ConfigurationDiagnostics {
    let (entries, warnings, dotenvFaults) = readLayers()
    var assembly = SettingsBuilder(entries)
    let settings = assembly.settings(warnings: warnings)
    let faults = (dotenvFaults + entries.faults + assembly.faults).enumerated().sorted { first, second in
      let (former, latter) = (first.element.origin.rank, second.element.origin.rank)
      return former == latter ? first.offset < second.offset : former < latter
    }
    return ConfigurationDiagnostics(
      settings: faults.isEmpty ? settings : nil, faults: faults.map(\.element), warnings: warnings + assembly.warnings)
  }

  /// Reads and merges all layers, and adds defaults that depend on the environment.
  func readLayers() -> (entries: Entries, warnings: [Warning], dotenvFaults: [ConfigurationError]) {
    let (dotenv, dotenvWarnings, dotenvFaults) = readDotEnv()
    let variables = Variables(environment: environment, dotenv: dotenv)
    var given = readFile()
    given.overlay(variables.entries(in: workingDirectory))
    given.overlay(FlagLayer.entries(of: flags, in: workingDirectory))

    var (entries, warnings) = Aliases.resolve(variables, in: workingDirectory, over: given)
    warnings += dotenvWarnings + variables.lookalikes()
    DefaultResolution.addCredentials(to: &entries, environment: environment)
    if let warning = DefaultResolution.addRoute(to: &entries) { warnings.append(warning) }
    DefaultResolution.addStore(to: &entries, environment: environment, isRoot: FileContent.isRoot)
    return (entries, warnings, dotenvFaults)
  }

  /// The values of the file; none without a file. Faults are among them.
  func readFile() -> Entries {
    guard let file else { return Entries() }
    var entries = Entries()
    do throws(FileContentError) {
      let bytes = try FileContent.read(FilePath.absolute(file, in: workingDirectory), acceptsPipe: true)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        entries.refuseFile(ConfigurationError(.file(file, line: 1, column: 1), nil, "not UTF-8"))
        return entries
      }
      return FileLayer.entries(of: text, at: file, in: workingDirectory)
    } catch {
      let isNamedByVariable = file == environment[ConfigurationSearch.variable]
      entries.refuseFile(
        ConfigurationError(
          .file(file, line: 1, column: 1), nil, "cannot read the file: \(error.reason)",
          hint: (isNamedByVariable ? "\(ConfigurationSearch.variable) names this file; " : "")
            + "name a configuration file that this user can read"))
      return entries
    }
  }

  /// The variables of `.env`; empty if the file does not exist.
  ///
  /// A file that this user cannot read is a warning: the user has named neither the file nor the folder, and a command
  /// may run in the home folder of another user.
  private func readDotEnv() -> (
    variables: [String: DotEnv.Variable], warnings: [Warning], faults: [ConfigurationError]
  ) {
    do throws(FileContentError) {
      let bytes = try FileContent.read(FilePath.absolute(".env", in: workingDirectory))
      guard let text = String(validating: bytes, as: UTF8.self) else {
        return ([:], [], [ConfigurationError(.dotenv(line: 1, variable: ""), nil, "not UTF-8")])
      }
      let dotenv = DotEnv(text: text)
      return (dotenv.variables, [], dotenv.faults)
    } catch {
      if error == .isMissing { return ([:], [], []) }
      let place = FilePath.absolute(".env", in: workingDirectory)
      if error == .isForbidden {
        return ([:], [Warning(.dotenv(line: 1, variable: ""), nil, "not used: \(place): \(error.reason)")], [])
      }
      return (
        [:], [], [ConfigurationError(.dotenv(line: 1, variable: ""), nil, "cannot read the file: \(error.reason)")]
      )
    }
  }
}
