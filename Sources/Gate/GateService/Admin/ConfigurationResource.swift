internal import Transport

/// An effective setting and its source.
public struct SettingDescription: Codable, Sendable, Hashable {
  /// The path of the setting, such as `routes[0].upstream`.
  public let key: String
  /// Absent if the setting has no value. Secrets are masked.
  public let value: String?
  /// `default`, or where the value is from, such as `gate.yaml:3:9`.
  public let source: String

  public init(key: String, value: String?, source: String) {
    (self.key, self.value, self.source) = (key, value, source)
  }
}

/// A setting that a reload has changed.
public struct SettingChange: Codable, Sendable, Hashable {
  /// When the reload was done.
  public let at: String
  public let key: String
  /// Absent without a value. Secrets are masked, so that a changed secret in the place of another one is no change.
  public let before: String?
  public let after: String?

  /// The maximum number of changes that a gate remembers.
  public static let most = 100

  /// Returns the settings whose values differ, in the order of the settings.
  public static func changes(
    from before: [SettingDescription], to after: [SettingDescription], at instant: String
  ) -> [SettingChange] {
    func values(_ settings: [SettingDescription]) -> [String: String?] {
      Dictionary(settings.map { ($0.key, $0.value) }) { first, _ in first }
    }
    let (old, new) = (values(before), values(after))
    let keys = after.map(\.key) + before.map(\.key).filter { new[$0] == nil }
    return keys.compactMap { key in
      let (past, present) = (old[key] ?? nil, new[key] ?? nil)
      return past == present ? nil : SettingChange(at: instant, key: key, before: past, after: present)
    }
  }
}

/// The effective settings of a gate.
public struct ConfigurationListing: Codable, Sendable, Hashable {
  public let settings: [SettingDescription]
  /// What reloads have changed since the start of the gate, the newest first, at most `SettingChange.most`; absent from a
  /// gate of an older version.
  public let changes: [SettingChange]?

  public init(settings: [SettingDescription], changes: [SettingChange]?) {
    (self.settings, self.changes) = (settings, changes)
  }
}

/// `/v1/configuration`: the settings that the gate uses, each with its source.
public struct ConfigurationResource: AdminResource {
  private let listing: @Sendable () async -> ConfigurationListing

  /// - Parameter listing: Returns the settings in use and their changes, with masked secrets.
  public init(_ listing: @escaping @Sendable () async -> ConfigurationListing) { self.listing = listing }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/configuration",
        "Returns the effective settings with their sources, and what reloads changed; secrets are masked.",
        answers: AdminAnswers(200, schema: .configurationListing)
      ) { _ throws(AdminError) in .json(await listing()) }
    ]
  }
}
