internal import ConfigurationEngine

extension SettingsBuilder {
  /// `nil` if no tokens are issued or a value is faulty.
  mutating func tokens(besides routes: [GateSettings.Route]) -> GateSettings.Tokens? {
    let audiences = elements(Keys.tokenAudience)
    let (lifetime, url) = (value(Keys.tokenLifetime), value(Keys.tokenURL))
    let list = path(Keys.tokenAudience, 0).parent
    guard !audiences.isEmpty else {
      guard !entries.isFaulty(list), entries.indices(of: list).isEmpty else { return nil }
      if url != nil {
        refuse(path(Keys.tokenURL), "has no effect without tokens.audiences", hint: Self.audienceHint)
      }
      return nil
    }
    for index in entries.indices(of: list) {
      if let audience = value(Keys.tokenAudience, index) { check(audience, at: list[index], routes) }
    }
    guard let lifetime else { return nil }
    return GateSettings.Tokens(audiences: audiences, lifetime: lifetime, url: url)
  }

  private static let audienceHint = "list the services that accept the tokens: audiences: [\"https://api.example.com\"]"

  /// A token for an upstream's audience could be shown to this upstream in place of an identity assertion.
  private mutating func check(_ audience: String, at place: SettingPath, _ routes: [GateSettings.Route]) {
    let reason = "is the audience of identity assertions for an upstream"
    let hint = "give the service that accepts tokens an audience of its own"
    if audience == value(Keys.audience) {
      refuse(place, "\(InvalidSetting.quoted(audience)) \(reason) (identity.audience)", hint: hint)
    } else if let route = routes.first(where: { $0.audience == audience }) {
      refuse(place, "\(InvalidSetting.quoted(audience)) \(reason) (route \(route.path))", hint: hint)
    }
  }
}
