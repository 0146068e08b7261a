/// The settings of the section `limits`.
extension Keys {
  static let globalSessions = Key(
    "limits.global_sessions", .integer(1...10_000_000), default: "20000",
    "Maximum open sessions of all gates that share the store. More upgrades get 503; open sessions stay.")
  static let connectionsPerAddress = Key(
    "limits.per_ip.connections", .countOrOff(1...1_000_000), default: "off",
    "Maximum open connections per address (or IPv6 /64) and gate. More connections are closed.")
  static let challengesPerAddress = Key(
    "limits.per_ip.challenges", .rateOrOff, default: "off", "The rate of challenges per address; then 429.")
  static let registrationsPerAddress = Key(
    "limits.per_ip.registrations", .rateOrOff, default: "off", "The rate of registration attempts per address.")
  static let upgradesPerAddress = Key(
    "limits.per_ip.upgrades", .rateOrOff, default: "off",
    "The rate of upgrade attempts per address. An address is not a device: many phones may share one.")
  static let upgradesPerKey = Key(
    "limits.per_key.upgrades", .rateOrOff, default: "off", "The rate of admissions per registered key.")
}
