internal import ConfigurationEngine

/// The definition of every setting. The file's grammar, environment variables, suggestions, the JSON Schema and the
/// reference are all derived from it. The settings of each section are in a file beside this one, each with its place in
/// the list of the section.
enum Keys {
  static let version = Key("version", .integer(1...1), default: "1", "The version of the configuration format.")

  /// All settings, in the order of the documents.
  static let all = [
    [version.definition], listenKeys, tlsKeys, debugTLSKeys, appAttestKeys, routeKeys, sessionKeys, storeKeys,
    limitKeys, identityKeys, tokenKeys, adminKeys, ConsoleKeys.definitions, observabilityKeys, shutdownKeys,
  ].flatMap(\.self)
}

extension ElementCondition {
  static let ios = ElementCondition("platform", is: "ios", default: "ios")
  static let android = ElementCondition("platform", is: "android", default: "ios")
}
