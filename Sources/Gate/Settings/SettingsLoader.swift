#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Reads the configuration of a gate: flags over environment over file over defaults.
///
/// It reads files, and changes nothing.
public struct SettingsLoader: Sendable {
  /// The configuration file; `nil` for none.
  public var file: String?
  public var flags: [FlagSetting]
  public var environment: [String: String]
  /// Where `.env` is looked for, and where relative paths of flags and variables start. Absolute.
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

  /// The settings, or everything that is wrong with them.
  public func load() throws(ConfigurationFaults) -> GateSettings {
    let examination = examine()
    guard let settings = examination.settings else { throw ConfigurationFaults(faults: examination.faults) }
    return settings
  }

  /// Everything there is to say about the configuration, sound or not.
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

  /// What the layers give, one over the other, with what follows from elsewhere.
  func readLayers() -> (entries: Entries, warnings: [Warning], dotenvFaults: [Fault]) {
    let (dotenv, dotenvFaults) = readDotEnv()
    let variables = Variables(environment: environment, dotenv: dotenv)
    var given = readFile()
    given.overlay(variables.entries(in: workingDirectory))
    given.overlay(FlagLayer.entries(of: flags, in: workingDirectory))

    var (entries, warnings) = Aliases.resolve(variables, in: workingDirectory, over: given)
    warnings += variables.lookalikes()
    DefaultResolution.addCredentials(to: &entries, environment: environment)
    if let warning = DefaultResolution.addRoute(to: &entries) { warnings.append(warning) }
    DefaultResolution.addStore(to: &entries, environment: environment, isRoot: FileContent.isRoot)
    return (entries, warnings, dotenvFaults)
  }

  private func readFile() -> Entries {
    guard let file else { return Entries() }
    var entries = Entries()
    do throws(FileFault) {
      let bytes = try FileContent.read(FilePath.absolute(file, in: workingDirectory), acceptsPipe: true)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        entries.refuseFile(Fault(.file(file, line: 1, column: 1), nil, "not UTF-8"))
        return entries
      }
      return FileLayer.entries(of: text, at: file, in: workingDirectory)
    } catch {
      entries.refuseFile(
        Fault(
          .file(file, line: 1, column: 1), nil, "cannot read the file: \(error.reason)",
          hint: "name a configuration file that this user may read"))
      return entries
    }
  }

  /// The variables of `.env`; none if there is no such file.
  private func readDotEnv() -> (variables: [String: DotEnv.Variable], faults: [Fault]) {
    do throws(FileFault) {
      let bytes = try FileContent.read(FilePath.absolute(".env", in: workingDirectory))
      guard let text = String(validating: bytes, as: UTF8.self) else {
        return ([:], [Fault(.dotenv(line: 1, variable: ""), nil, "not UTF-8")])
      }
      let dotenv = DotEnv(text: text)
      return (dotenv.variables, dotenv.faults)
    } catch {
      if error == .isMissing { return ([:], []) }
      return ([:], [Fault(.dotenv(line: 1, variable: ""), nil, "cannot read the file: \(error.reason)")])
    }
  }
}
