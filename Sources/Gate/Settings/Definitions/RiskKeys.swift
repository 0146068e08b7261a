internal import ConfigurationEngine

// The settings of the risk metric. On iOS Apple counts the keys of a device, on Android the store.
extension Keys {
  static let riskKeys = [KeyDefinition](
    riskKey, riskKeyID, riskThreshold, riskAction, riskUnknown, riskEndpoint, longestPatchAge)

  static let riskKey = Key(
    "app_attest.apps[].risk.key_file", .file, only: .ios, example: "AuthKey_AAABBBCCC1.p8",
    "The private key (PEM) of the developer account, with DeviceCheck enabled. Without it, nothing is sent to Apple.")
  static let riskKeyID = Key(
    "app_attest.apps[].risk.key_id", .developerKeyID, only: .ios,
    "The ID of the private key in the developer account. Required with `key_file`.")
  static let riskThreshold = Key(
    "app_attest.apps[].risk.threshold", .integer(1...1_000_000), example: "5",
    "The greatest risk metric of a key that is not acted on; on Android at most 99. Required unless `action` is "
      + "`observe`, or on Android `max_patch_age` is set.")
  static let riskAction = Key<GateSettings.App.Risk.Action>(
    "app_attest.apps[].risk.action", .choice(), default: "observe",
    "What a metric above `threshold` causes: nothing, refused admissions, or also that the key is revoked.")
  static let longestPatchAge = Key(
    "app_attest.apps[].risk.max_patch_age", .duration(2_592_000_000...315_360_000_000), only: .android,
    example: "365d",
    "The greatest age of the device's security patches, from the first day of their month. By default any, also an "
      + "unknown one.")
  static let riskUnknown = Key<GateSettings.App.Risk.Unknown>(
    "app_attest.apps[].risk.when_unknown", .choice(), default: "accept", only: .ios,
    "The rule for keys without a current metric: those that are new, and those that Apple no longer assesses.")
  static let riskEndpoint = Key(
    "app_attest.apps[].risk.endpoint", .riskEndpoint, only: .ios, example: "http://127.0.0.1:8090/v1/attestationData",
    "Where receipts are exchanged, for tests with simulated devices. By default Apple's service.")
}

extension GateSettings.App {
  /// How the risk metric of the app's keys is obtained, and what follows from it.
  public struct Risk: Sendable, Hashable {
    public enum Action: String, Sendable, Hashable, CaseIterable { case observe, refuse, revoke }
    public enum Unknown: String, Sendable, Hashable, CaseIterable { case accept, refuse }

    /// Apple's service for keys of the environments production and development.
    public static let appleEndpoints = [
      "https://data.appattest.apple.com/v1/attestationData",
      "https://data-development.appattest.apple.com/v1/attestationData",
    ]

    /// PEM with PKCS #8: a key on P-256 of the developer account of the app's team.
    public var keyFile: String
    /// Ten characters of A-Z and 0-9.
    public var keyID: String
    /// At least 1. `nil` only with `observe`.
    public var threshold: Int?
    public var action: Action
    public var whenUnknown: Unknown
    /// A URL with `https`, or with `http` on loopback; `nil` for Apple's service of each key's environment.
    public var endpoint: String?
  }
}

extension GateSettings.AndroidApp {
  /// What follows from the number of keys that a device's attestation key signed, and from the age of its patches.
  public struct Risk: Sendable, Hashable {
    /// The greatest threshold: the store counts one more.
    public static let greatestThreshold = 99

    /// 1 to `greatestThreshold`. `nil` accepts every number.
    public var threshold: Int?
    public var action: GateSettings.App.Risk.Action
    /// `nil` accepts every age. Never set with `observe`.
    public var longestPatchAge: Duration?
  }
}

extension Kind where Value == String {
  /// The ID of a key in the developer account, which has the form of a team's.
  static var developerKeyID: Kind {
    let team = Kind<String>.teamID
    return Kind(
      name: "key id", form: team.form, schema: team.schema, example: team.example
    ) { text throws(InvalidSetting) in try team.read(text) }
  }

  /// The URL of a service that exchanges receipts.
  static var riskEndpoint: Kind {
    Kind(
      name: "URL", form: "a URL that begins with `https://`, or with `http://` and a loopback address",
      schema: .matching("^https?://[^/?#@]+/[^#]*$")
    ) { text throws(InvalidSetting) in
      guard text.hasPrefix("http://") else {
        let url = try Kind<String>.directoryURL.read(text)
        guard url.dropFirst("https://".count).contains("/") else {
          throw InvalidSetting(
            "\(InvalidSetting.quoted(url)) has no path", suggestion: "\(url)/v1/attestationData")
        }
        return url
      }
      let secured = "https://\(text.dropFirst("http://".count))"
      let host = secured.dropFirst("https://".count).prefix { $0 != "/" }
      guard ["127.0.0.1", "[::1]", "localhost"].contains(where: { host == $0 || host.hasPrefix("\($0):") }) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not encrypted", suggestion: secured)
      }
      return "http://" + (try Self.riskEndpoint.read(secured)).dropFirst("https://".count)
    }
  }
}
