/// The limits for clients, shared by all gates with the same store. `nil` means no limit.
public struct RequestLimits: Sendable, Hashable {
  /// The maximum number of concurrent sessions.
  public var sessions = Int.max
  /// The maximum number of concurrent sessions of one attested key.
  public var sessionsPerKey: Int?
  /// Whether a session above that number closes the key's oldest socket; otherwise it is refused.
  public var closesOldestSessionOfKey = false
  public var challengesPerAddress: Rate?
  public var registrationsPerAddress: Rate?
  /// Upgrades, and forwarded ordinary requests.
  public var upgradesPerAddress: Rate?
  /// Admissions of one attested key from any address.
  public var upgradesPerKey: Rate?

  public init() {}
}

/// The kinds of rate limits.
enum RateLimit: String, Sendable, Hashable, CaseIterable {
  case challengesPerAddress = "challenges_per_ip"
  case registrationsPerAddress = "registrations_per_ip"
  case upgradesPerAddress = "upgrades_per_ip"
  case upgradesPerKey = "upgrades_per_key"
}

extension RequestLimits {
  subscript(limit: RateLimit) -> Rate? {
    switch limit {
    case .challengesPerAddress: challengesPerAddress
    case .registrationsPerAddress: registrationsPerAddress
    case .upgradesPerAddress: upgradesPerAddress
    case .upgradesPerKey: upgradesPerKey
    }
  }
}
