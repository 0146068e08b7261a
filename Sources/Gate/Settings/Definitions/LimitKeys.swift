/// The section `limits`.
extension Keys {
  static let globalSessions = Key(
    "limits.global_sessions", .integer(1...10_000_000), default: "20000",
    "Sessions at a time, of all gates that share the store; further upgrades get 503 and those that run stay.")
  static let connectionsPerAddress = Key(
    "limits.per_ip.connections", .countOrOff(1...1_000_000), default: "off",
    "Connections at a time to one gate from one address, or one /64 of IPv6; further ones are closed.")
  static let challengesPerAddress = Key(
    "limits.per_ip.challenges", .rateOrOff, default: "off", "How often one address gets a challenge; then 429.")
  static let registrationsPerAddress = Key(
    "limits.per_ip.registrations", .rateOrOff, default: "off", "How often one address may try to register a key.")
  static let upgradesPerAddress = Key(
    "limits.per_ip.upgrades", .rateOrOff, default: "off",
    "How often one address may ask to be let in. An address is not a device: many phones may share one.")
  static let upgradesPerKey = Key(
    "limits.per_key.upgrades", .rateOrOff, default: "off", "How often one registered key is let in.")
}
