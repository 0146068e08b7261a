internal import Commands
internal import Glibc

/// Finds the configuration file of a command that names none: that of an environment variable, otherwise the file of
/// an installed program if it exists. `SALLYPORT_ROOT` moves that file.
public struct ConfigurationSearch: Sendable {
  /// The environment variable that names a configuration file.
  public let variable: String

  /// The file of an installed program.
  public let standardFile: String

  /// The file that the variable names; `nil` if it is unset or empty.
  public let namedFile: String?

  /// Whether the file of an installed program exists. A folder that this user must not read counts as one that has it.
  public let hasStandardFile: Bool

  /// - Parameters:
  ///   - variable: The environment variable that names a file.
  ///   - standard: The file of an installed program.
  public init(variable: String, standard: String, environment: [String: String]) {
    self.variable = variable
    standardFile = StandardPlaces.path(standard, in: environment)
    namedFile = environment[variable].flatMap { $0.isEmpty ? nil : $0 }
    hasStandardFile = access(standardFile, F_OK) == 0 || errno == EACCES
  }

  /// The file; `nil` if there is none.
  public var file: String? { namedFile ?? (hasStandardFile ? standardFile : nil) }

  /// Where a configuration was looked for, for a command that found none.
  public var advice: String {
    "no configuration file was found: name one with -c FILE or \(variable), or create \(standardFile)"
  }
}
