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

/// The effective settings of a gate.
public struct ConfigurationListing: Codable, Sendable, Hashable {
  public let settings: [SettingDescription]
}

/// `/v1/configuration`: the settings that the gate uses, each with its source.
public struct ConfigurationResource: AdminResource {
  private let settings: @Sendable () async -> [SettingDescription]

  /// - Parameter settings: Returns the settings in use, with masked secrets.
  public init(_ settings: @escaping @Sendable () async -> [SettingDescription]) { self.settings = settings }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/configuration", "Returns the effective settings with their sources; secrets are masked.",
        answers: AdminAnswers(200, schema: .configurationListing)
      ) { _ throws(AdminError) in .json(ConfigurationListing(settings: await settings())) }
    ]
  }
}
