/// The places from which a program reads its configuration. Flags override the environment, which overrides `.env`,
/// which overrides the file.
public struct SettingsLayers: Sendable {
  /// The configuration file; `nil` for none.
  public var file: String?
  public var flags: [FlagSetting]
  public var environment: [String: String]
  /// The folder of `.env`, and the base of relative paths in flags and variables. An absolute path.
  public var workingDirectory: String

  public init(file: String?, flags: [FlagSetting], environment: [String: String], workingDirectory: String) {
    self.file = file
    self.flags = flags
    self.environment = environment
    self.workingDirectory = workingDirectory
  }

  /// What the layers give, before defaults.
  public struct Reading: Sendable {
    /// The merged values, with the faults of all layers.
    public var entries: Entries
    /// The variables of the environment and of `.env`.
    public let variables: Variables
    public var warnings: [Warning]
    /// The faults of `.env`.
    public let dotenvFaults: [ConfigurationError]
  }

  /// Reads and merges all layers. Its only side effect is to read the file and `.env`.
  ///
  /// - Parameter variable: The environment variable that may have named the file, for the hint of a file that cannot
  ///   be read.
  public func read(_ table: SettingsTable, fileNamedBy variable: String) -> Reading {
    let (dotenv, dotenvWarnings, dotenvFaults) = readDotEnv(table)
    let variables = Variables(environment: environment, dotenv: dotenv)
    var entries = readFile(table, namedBy: variable)
    entries.overlay(variables.entries(in: workingDirectory, table))
    entries.overlay(Entries(flags, in: workingDirectory, table))
    return Reading(
      entries: entries, variables: variables, warnings: dotenvWarnings + variables.lookalikes(table),
      dotenvFaults: dotenvFaults)
  }

  /// The values of the file; none without a file. Faults are among them.
  public func readFile(_ table: SettingsTable, namedBy variable: String) -> Entries {
    guard let file else { return Entries() }
    var entries = Entries()
    guard !file.isEmpty else {
      // Often a shell variable that is not set.
      entries.refuseFile(
        ConfigurationError(.standard, nil, "the name of the configuration file is empty", hint: "name it after -c"))
      return entries
    }
    do throws(FileContentError) {
      let bytes = try FileContent.read(FilePath.absolute(file, in: workingDirectory), acceptsPipe: true)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        let (line, column) = FileContent.endOfUTF8(in: bytes)
        entries.refuseFile(ConfigurationError(.file(file, line: line, column: column), nil, "not UTF-8"))
        return entries
      }
      return FileLayer.entries(of: text, at: file, in: workingDirectory, table)
    } catch {
      let isNamedByVariable = file == environment[variable]
      entries.refuseFile(
        ConfigurationError(
          .file(file, line: 1, column: 1), nil, "cannot read the file: \(error.reason)",
          hint: (isNamedByVariable ? "\(variable) names this file; " : "")
            + "name a configuration file that this user can read"))
      return entries
    }
  }

  /// The variables of `.env`; empty if the file does not exist.
  ///
  /// A file that this user cannot read, or a folder, is a warning: the user has named neither of them, and a command may
  /// run in the home folder of another user. A file that another user could have written is not used either, and is a
  /// fault if it names variables of this program: they would choose where tokens go.
  private func readDotEnv(_ table: SettingsTable) -> (
    variables: [String: DotEnv.Variable], warnings: [Warning], faults: [ConfigurationError]
  ) {
    let place = FilePath.absolute(".env", in: workingDirectory)
    do throws(FileContentError) {
      let (bytes, permissions, owner) = try FileContent.readWithStatus(place)
      if let fault = DotEnv.fault(
        at: place, ofOwner: owner, throughLinkOf: FileContent.ownerOfLink(place), permissions, environment)
      {
        // Bytes of another user: they are not parsed.
        let isOfProgram = bytes.firstRange(of: Array(table.variablePrefix.utf8)) != nil
        let warning = Warning(.dotenv(line: 1, variable: ""), nil, "not used: \(fault.reason)")
        return isOfProgram ? ([:], [], [fault]) : ([:], [warning], [])
      }
      guard let text = String(validating: bytes, as: UTF8.self) else {
        let (line, _) = FileContent.endOfUTF8(in: bytes)
        return ([:], [], [ConfigurationError(.dotenv(line: line, variable: ""), nil, "not UTF-8")])
      }
      let dotenv = DotEnv(text: text)
      return (dotenv.variables, [], dotenv.faults)
    } catch {
      if error == .isMissing { return ([:], [], []) }
      // `.env` is also the usual name of a folder with a virtual environment of Python.
      if error == .isForbidden || error == .isFolder {
        return ([:], [Warning(.dotenv(line: 1, variable: ""), nil, "not used: \(place): \(error.reason)")], [])
      }
      return (
        [:], [], [ConfigurationError(.dotenv(line: 1, variable: ""), nil, "cannot read the file: \(error.reason)")]
      )
    }
  }
}

extension Entries {
  /// Uses files of `$CREDENTIALS_DIRECTORY` for file settings that are not set.
  public mutating func addCredentials(of table: SettingsTable, environment: [String: String]) {
    guard let folder = environment["CREDENTIALS_DIRECTORY"], folder.hasPrefix("/") else { return }
    for key in table.keys {
      guard let credential = key.credential else { continue }
      let path = SettingPath(pattern: key.pattern, indices: [])
      let file = FilePath.absolute(credential, in: folder)
      if values[path] == nil, !isFaulty(path), FileContent.permissions(of: file) != nil {
        take(file, for: path, key, from: .credential(file), in: folder)
      }
    }
  }
}

extension SettingsBuilder {
  /// All faults, those of the layers and of this builder, in the order of the file, `.env`, variables and flags.
  public func faults(besides dotenvFaults: [ConfigurationError]) -> [ConfigurationError] {
    (dotenvFaults + entries.faults + faults).enumerated().sorted { first, second in
      let (former, latter) = (first.element.origin.rank, second.element.origin.rank)
      return former == latter ? first.offset < second.offset : former < latter
    }.map(\.element)
  }

  /// The faults of the keys in `sections` alone, for commands that need only these. A fault without a key concerns the
  /// file itself, so no part of the file can be trusted.
  public func faults(
    besides dotenvFaults: [ConfigurationError], of sections: [String]
  ) -> [ConfigurationError] {
    faults(besides: dotenvFaults).filter { fault in
      fault.key.map { key in sections.contains { key == $0 || key.hasPrefix($0 + ".") } } ?? true
    }
  }
}
