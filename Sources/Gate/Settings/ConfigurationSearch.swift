internal import Commands
internal import Glibc

/// Finds the configuration file of a command that names none: that of `SALLYPORT_CONFIG`, otherwise
/// `/etc/sallyport/sallyport.yaml` if it exists. `SALLYPORT_ROOT` moves that file.
public struct ConfigurationSearch: Sendable {
  /// The environment variable that names a configuration file.
  public static let variable = "SALLYPORT_CONFIG"

  /// The file of an installed gate.
  public let standardFile: String

  /// The file that `SALLYPORT_CONFIG` names; `nil` if it is unset or empty.
  public let namedFile: String?

  /// Whether the file of an installed gate exists. A folder that this user must not read counts as one that has it.
  public let hasStandardFile: Bool

  public init(environment: [String: String]) {
    standardFile = StandardPlaces.path("/etc/sallyport/sallyport.yaml", in: environment)
    namedFile = environment[Self.variable].flatMap { $0.isEmpty ? nil : $0 }
    hasStandardFile = access(standardFile, F_OK) == 0 || errno == EACCES
  }

  /// The file; `nil` if there is none.
  public var file: String? { namedFile ?? (hasStandardFile ? standardFile : nil) }

  /// Where a configuration was looked for, for a command that found none.
  public var advice: String {
    "no configuration file was found: name one with -c FILE or \(Self.variable), or create \(standardFile)"
  }
}
