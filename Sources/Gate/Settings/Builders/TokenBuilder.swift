internal import ConfigurationEngine

extension SettingsBuilder {
  /// `nil` if no tokens are issued or a value is faulty.
  ///
  /// - Parameter apps: The names of all apps of the configuration.
  mutating func tokens(besides routes: [GateSettings.Route], for apps: [String]) -> GateSettings.Tokens? {
    let audiences = elements(Keys.tokenAudience)
    let clients = clients(for: apps)
    let (lifetime, url) = (value(Keys.tokenLifetime), value(Keys.tokenURL))
    let list = path(Keys.tokenAudience, 0).parent
    guard !audiences.isEmpty || !clients.isEmpty else {
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
    return GateSettings.Tokens(audiences: audiences, lifetime: lifetime, url: url, clients: clients)
  }

  private mutating func clients(for apps: [String]) -> [GateSettings.Tokens.Client] {
    var clients: [GateSettings.Tokens.Client] = []
    for index in elementIndices(of: .root["tokens"]["clients"]) {
      let named = elements(Keys.tokenClientApps, index)
      refuseEmptyList(Keys.tokenClientApps, index, meaning: "all apps")
      for (position, app) in named.enumerated() where !apps.contains(app) {
        refuse(
          path(Keys.tokenClientApps, index, position), "\(InvalidSetting.quoted(app)) is not in app_attest.apps",
          hint: apps.isEmpty ? "add the app to app_attest.apps" : "one of \(apps.joined(separator: ", "))")
      }
      let claims = elements(Keys.tokenClientClaims, index)
      if Set(claims.map(\.name)).count < claims.count {
        refuse(path(Keys.tokenClientClaims, index, 0).parent, "a claim is there twice")
      }
      guard let id = required(Keys.tokenClientID, index), let lifetime = value(Keys.tokenClientLifetime, index) else {
        continue
      }
      if clients.contains(where: { $0.id == id }) {
        refuse(path(Keys.tokenClientID, index), "the client \(InvalidSetting.quoted(id)) is configured twice")
      }
      if let overlap = value(Keys.identityKeyOverlap), lifetime > overlap {
        refuse(
          path(Keys.tokenClientLifetime, index), "is longer than identity.key_overlap",
          hint: "set identity.key_overlap to at least as much: attestations outlive their key otherwise")
      }
      clients.append(.init(id: id, apps: named.isEmpty ? apps : named, lifetime: lifetime, claims: claims))
    }
    return clients
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
