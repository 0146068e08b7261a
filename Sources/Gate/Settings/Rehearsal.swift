public import ConfigurationEngine

/// An operator's configuration file, to be run on a developer's machine: some of its values are replaced, and nothing
/// is read or written where the removed values point to.
///
/// Only the file counts, without the environment and `.env`.
public struct Rehearsal: Sendable {
  /// A key whose value differs from that in the file.
  public struct Difference: Sendable, Hashable {
    /// The path of the key: `listen.port`.
    public let key: String
    /// The value in the file or its default, with secrets masked; `nil` if there is none.
    public let file: String?
    /// The value in the rehearsal; `nil` if there is none.
    public let rehearsal: String?
  }

  /// The valid settings of a rehearsal.
  public struct Settings: Sendable {
    /// The settings, with the values of the file that were not replaced.
    public let settings: GateSettings
    /// Every key whose value differs, in the order of the settings table.
    public let differences: [Difference]
  }

  private let given: Entries
  private let warnings: [Warning]

  /// Reads the file at `path`.
  ///
  /// - Parameter workingDirectory: The base of a relative `path`, as an absolute path.
  /// - Throws: `ConfigurationErrors` with every fault of its syntax, its keys and the form of its values. Faults that
  ///   concern several values or other files are found by `settings(replacing:with:)`.
  public init(of path: String, in workingDirectory: String) throws(ConfigurationErrors) {
    var given = SettingsLoader(file: path, environment: [:], workingDirectory: workingDirectory).readFile()
    warnings = [DefaultResolution.addRoute(to: &given)].compactMap(\.self)
    DefaultResolution.addStore(to: &given, environment: [:], isRoot: FileContent.isRoot)
    guard given.faults.isEmpty else { throw ConfigurationErrors(faults: given.faults) }
    self.given = given
  }

  /// The apps of iOS as `TEAM.bundle`, in the order of the file.
  public var appIDs: [String] {
    indices(of: .ios).compactMap { index in
      let app = Self.apps[index]
      guard let team = given.values[app["team_id"]], let bundle = given.values[app["bundle_id"]] else { return nil }
      return "\(team.text).\(bundle.text)"
    }
  }

  /// Whether the file has an app of Android.
  public var hasAndroidApps: Bool { !indices(of: .android).isEmpty }

  /// The settings without the values below `removed`, which are paths of keys, sections or lists, and with those of
  /// `replacements`. Every app of iOS has the environment `development` alone, in which simulated devices are, and no
  /// risk: Apple knows no simulated devices.
  ///
  /// - Throws: `ConfigurationErrors` with every fault, each at its place in the file.
  public func settings(
    removing removed: [String], replacing replacements: [FlagSetting]
  ) throws(ConfigurationErrors) -> Settings {
    var entries = given
    for path in removed.compactMap(SettingPath.init(text:)) { entries.remove(path) }
    let flags = indices(of: .ios).map { index -> FlagSetting in
      let environments = Self.apps[index]["environments"]
      entries.remove(environments)
      entries.remove(Self.apps[index]["risk"])
      return FlagSetting(flag: "-c", key: environments[0].text, text: "development")
    }
    entries.overlay(Entries(flags + replacements, in: "/", .gate))
    var builder = SettingsBuilder(entries, .gate)
    let settings = builder.settings(warnings: warnings)
    let faults = entries.faults + builder.faults
    guard let settings, faults.isEmpty else { throw ConfigurationErrors(faults: faults) }
    let before = SettingsBuilder(given, .gate).effectiveValues()
    return Settings(settings: settings, differences: Self.differences(from: before, to: settings.effective))
  }

  private static let apps = SettingPath.root["app_attest"]["apps"]

  private func indices(of platform: GateSettings.Platform) -> [Int] {
    let builder = SettingsBuilder(given, .gate)
    return given.indices(of: Self.apps).filter { builder.value(Keys.platform, $0) == platform }
  }

  /// Compares the values by key. Keys that only one side has are compared with no value.
  private static func differences(from file: [EffectiveValue], to rehearsal: [EffectiveValue]) -> [Difference] {
    let old = Dictionary(file.map { (element($0.key), $0.text) }, uniquingKeysWith: { first, _ in first })
    let new = Dictionary(rehearsal.map { (element($0.key), $0.text) }, uniquingKeysWith: { first, _ in first })
    var seen: Set<String> = []
    return (file + rehearsal).map { element($0.key) }.filter { seen.insert($0).inserted }
      .map { Difference(key: $0, file: old[$0] ?? nil, rehearsal: new[$0] ?? nil) }
      .filter { $0.file != $0.rehearsal }
  }

  /// The key of the value: a list with its default has the key of the list itself.
  private static func element(_ key: String) -> String {
    guard let path = SettingPath(text: key), case .list = SettingsTable.gate.shape(of: path) else { return key }
    return path[0].text
  }
}
