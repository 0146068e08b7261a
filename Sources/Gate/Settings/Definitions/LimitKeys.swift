internal import ConfigurationEngine

/// The settings of the section `limits`.
extension Keys {
  static let limitKeys = [KeyDefinition](
    globalSessions, connectionsPerAddress, challengesPerAddress, registrationsPerAddress, upgradesPerAddress,
    sessionsPerKey, whenKeyIsFull, upgradesPerKey)

  private static let counts = 1...10_000

  static let globalSessions = Key(
    "limits.global_sessions", .integer(1...10_000_000), default: "20000",
    "Maximum open sessions of all gates that share the store. More upgrades get 503; open sessions stay.")
  static let connectionsPerAddress = Key(
    "limits.per_ip.connections", .countOrOff(1...1_000_000), default: "off",
    "Maximum open connections per address (or IPv6 /64) and gate. More connections are closed.")
  static let challengesPerAddress = Key(
    "limits.per_ip.challenges", .rateOrOff(counts), default: "off", "The rate of challenges per address; then 429.")
  static let registrationsPerAddress = Key(
    "limits.per_ip.registrations", .rateOrOff(counts), default: "off", "The rate of registration attempts per address.")
  static let upgradesPerAddress = Key(
    "limits.per_ip.upgrades", .rateOrOff(counts), default: "off",
    "The rate of upgrade attempts per address. An address is not a device: many phones may share one.")
  static let sessionsPerKey = Key(
    "limits.per_key.sessions", .countOrOff(1...10_000), default: "16",
    "Maximum open sessions per registered key of all gates that share the store. Client certificates have no key.")
  static let whenKeyIsFull = Key<GateSettings.Limits.WhenFull>(
    "limits.per_key.when_full", .choice(), default: "refuse_newest",
    "Over the number of sessions: 429 for the newest, or 1008 for the key's oldest socket.")
  static let upgradesPerKey = Key(
    "limits.per_key.upgrades", .rateOrOff(counts), default: "off", "The rate of admissions per registered key.")
}
