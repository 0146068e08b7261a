internal import Foundation

/// The result of an examination of the settings: the settings or their faults, and where each value comes from.
public struct SettingsDiagnostics: Sendable {
  /// The settings; `nil` if there is a fault.
  public let settings: BackendSettings?
  /// All faults, in the order of the layers.
  public let faults: [SettingsError]
  private let values: [String: GivenValue]

  init(settings: BackendSettings?, faults: [SettingsError], values: [String: GivenValue]) {
    self.settings = settings
    self.faults = faults
    self.values = values
  }

  /// The place of the value of `key`; `nowhere` for a default.
  public func origin(of key: String) -> BackendSettingSource { values[key]?.origin ?? .nowhere }

  /// The same with another fault, which only opening a file or a URL shows.
  public func refusing(_ key: String, _ reason: String, hint: String?) -> SettingsDiagnostics {
    SettingsDiagnostics(
      settings: nil, faults: faults + [SettingsError(origin(of: key), key, reason, hint: hint)], values: values)
  }

  /// Every setting with a value, in the order of the reference. Secrets are in files; a password in the database's
  /// URL is masked.
  public var effective: [(key: String, value: String, origin: String)] {
    SettingKey.all.compactMap { key in
      guard let value = values[key.path]?.text ?? key.standard else { return nil }
      let origin = values[key.path].map { "\($0.origin)" } ?? "default"
      return (key.path, key.path == "database" ? Self.masked(value) : value, origin)
    }
  }

  /// A database URL without its user's password and without parameters that may contain one.
  public static func masked(_ url: String) -> String {
    guard let scheme = url.range(of: "://"), !url.hasPrefix("sqlite:") else { return url }
    let rest = url[scheme.upperBound...]
    let place = rest.prefix { $0 != "?" }
    let hasParameters = place.endIndex != rest.endIndex
    var text = String(url[..<scheme.upperBound])
    if let end = place.lastIndex(of: "@") {
      text += place[..<end].prefix { $0 != ":" } + (place[..<end].contains(":") ? ":***" : "")
    }
    let host = place.lastIndex(of: "@").map { place[$0...] } ?? place
    return text + host + (hasParameters ? "?…" : "")
  }
}
