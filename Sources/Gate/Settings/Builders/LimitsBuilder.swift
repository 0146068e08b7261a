public import ConfigurationEngine

extension GateSettings {
  public typealias Rate = RateSetting

  /// The limits for clients; `nil` for no limit.
  public struct Limits: Sendable, Hashable {
    public struct PerAddress: Sendable, Hashable {
      public var connections: Int?
      public var challenges: Rate?
      public var registrations: Rate?
      public var upgrades: Rate?
    }
    /// What happens to a session above the number of its key.
    public enum WhenFull: String, Sendable, Hashable, CaseIterable {
      case refuseNewest = "refuse_newest"
      case closeOldest = "close_oldest"
    }
    public struct PerKey: Sendable, Hashable {
      /// Maximum open sessions of one key at all gates that share the store.
      public var sessions: Int?
      public var whenFull: WhenFull
      public var upgrades: Rate?
    }
    /// Maximum open sessions of all gates that share the store.
    public var globalSessions: Int
    public var perAddress: PerAddress
    public var perKey: PerKey
  }
}

extension SettingsBuilder {
  func limits() -> GateSettings.Limits? {
    guard let sessions = value(Keys.globalSessions), let connections = value(Keys.connectionsPerAddress),
      let challenges = value(Keys.challengesPerAddress), let registrations = value(Keys.registrationsPerAddress),
      let upgrades = value(Keys.upgradesPerAddress), let sessionsOfKey = value(Keys.sessionsPerKey),
      let whenFull = value(Keys.whenKeyIsFull), let upgradesOfKey = value(Keys.upgradesPerKey)
    else { return nil }
    return GateSettings.Limits(
      globalSessions: sessions,
      perAddress: .init(
        connections: connections, challenges: challenges, registrations: registrations, upgrades: upgrades),
      perKey: .init(sessions: sessionsOfKey, whenFull: whenFull, upgrades: upgradesOfKey))
  }
}
