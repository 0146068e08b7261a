public import ConfigurationEngine
internal import Foundation
public import OIDCClient

/// The identity providers of `bearer.yaml`.
public struct BearerSettings: Sendable {
  /// The providers, in the order of the file; never empty.
  public let providers: [IdentityProvider]
  /// The provider of commands that name none: `default`, or the only provider. `nil` if the file does not say.
  public let standard: IdentityProvider?
  private let uses: [String: ProviderUse]

  /// The variable that names the file.
  private static let variable = "BEARER_CONFIG"

  /// Reads the file at `path` and the files that it names.
  ///
  /// - Parameter environment: The variables, for the hint of a file that cannot be read.
  /// - Throws: `ConfigurationErrors` with all faults, in the order of the file.
  public init(file path: String, environment: [String: String] = [:]) throws(ConfigurationErrors) {
    let folder = FileManager.default.currentDirectoryPath
    let layers = SettingsLayers(file: path, flags: [], environment: environment, workingDirectory: folder)
    var builder = SettingsBuilder(layers.readFile(.bearer, namedBy: Self.variable), .bearer)
    let ids = builder.providerIDs()
    var sections: [(provider: IdentityProvider, use: ProviderUse)] = []
    for id in ids where !builder.entries.isFaulty(ProviderReader.section(of: id)) {
      var reader = ProviderReader(id: id, builder)
      sections.append(reader.read())
      builder = reader.builder
    }
    builder.judgeFallbacks(of: ids)
    builder.judgeGitHosts(of: ids)
    let name = builder.value(Keys.standard)
    if let name { builder.refuseUnknown(name, at: builder.path(Keys.standard), among: ids) }
    let faults = builder.faults(besides: [])
    guard faults.isEmpty else { throw ConfigurationErrors(faults: faults) }
    providers = sections.map(\.provider)
    let standard = name ?? (ids.count == 1 ? ids[0] : nil)
    self.standard = providers.first { $0.id == standard }
    uses = Dictionary(uniqueKeysWithValues: zip(ids, sections.map(\.use)))
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
    if let path = environment[variable], !path.isEmpty { return path }
    if let folder = environment["XDG_CONFIG_HOME"], folder.hasPrefix("/") { return "\(folder)/sallyport/bearer.yaml" }
    guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
    return "\(home)/.config/sallyport/bearer.yaml"
  }
}

extension SettingsBuilder {
  /// The identifiers of the providers, in the order of the file. Refuses a file without one.
  fileprivate mutating func providerIDs() -> [String] {
    let section = SettingPath.root["providers"]
    let ids = entries.names(of: section)
    if ids.isEmpty, !entries.isFaulty(section) { refuse(section, "must contain a provider") }
    return ids
  }
}
