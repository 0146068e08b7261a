internal import Foundation
public import OIDCClient

/// The identity providers of `bearer.yaml`.
public struct BearerSettings: Sendable {
  /// The providers, in the order of the file; never empty.
  public let providers: [IdentityProvider]
  /// The provider of commands that name none: `default`, or the only provider. `nil` if the file does not say.
  public let standard: IdentityProvider?
  private let uses: [String: ProviderUse]

  /// The maximum size of each file, in bytes.
  public static let mostBytes = 1 << 20

  /// Reads the file at `path` and the files that it names.
  ///
  /// - Throws: `BearerSettingsErrors` with all faults, in the order of the file.
  public init(file path: String) throws(BearerSettingsErrors) {
    let file: SettingsFile
    do throws(SettingsFileError) {
      file = try SettingsFile.read(path)
    } catch {
      throw BearerSettingsErrors([BearerSettingsError(file: path, reason: error.reason)])
    }
    guard let text = String(validating: file.bytes, as: UTF8.self) else {
      throw BearerSettingsErrors([BearerSettingsError(file: path, reason: "is not valid UTF-8")])
    }
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) }
    try self.init(yaml: text, file: path, folder: folder ?? ".") { path throws(SettingsFileError) in
      try SettingsFile.read(path)
    }
  }

  /// Reads the YAML `text`. No input or output, except by `reading`.
  ///
  /// - Parameters:
  ///   - file: The name of the file, for faults.
  ///   - folder: Where relative paths start.
  ///   - reading: Reads a file that the text names. Called once for each such key.
  /// - Throws: `BearerSettingsErrors` with all faults, in the order of the text.
  public init(
    yaml text: String, file: String, folder: String,
    reading: @escaping (String) throws(SettingsFileError) -> SettingsFile
  ) throws(BearerSettingsErrors) {
    guard text.utf8.count <= Self.mostBytes else {
      throw BearerSettingsErrors([BearerSettingsError(file: file, reason: SettingsFileError.tooLarge.reason)])
    }
    let reader = DocumentReader(folder: folder, reading: reading)
    let (document, faults) = reader.read(text)
    guard faults.isEmpty else { throw BearerSettingsErrors(faults.sorted(in: file)) }
    providers = document.providers
    standard = document.standard
    uses = document.uses
  }

  /// The provider with this identifier.
  public func provider(_ id: String) -> IdentityProvider? { providers.first { $0.id == id } }

  /// How commands use the provider with this identifier.
  public func use(of id: String) -> ProviderUse { uses[id] ?? ProviderUse() }

  /// The path of the file for a user with this environment: `$BEARER_CONFIG`, or `sallyport/bearer.yaml` in
  /// `$XDG_CONFIG_HOME`, or the same in `~/.config`. `nil` if none of the variables is usable.
  ///
  /// As the XDG Base Directory specification says, a relative path in its variable counts as unset.
  public static func defaultPath(environment: [String: String]) -> String? {
    if let path = environment["BEARER_CONFIG"], !path.isEmpty { return path }
    if let folder = environment["XDG_CONFIG_HOME"], folder.hasPrefix("/") { return "\(folder)/sallyport/bearer.yaml" }
    guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
    return "\(home)/.config/sallyport/bearer.yaml"
  }
}
