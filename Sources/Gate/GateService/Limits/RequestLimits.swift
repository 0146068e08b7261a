/// What clients may do, for all gates that share a store together. `nil` is no limit.
public struct RequestLimits: Sendable, Hashable {
  /// Sessions at a time.
  public var sessions = Int.max
  public var challengesPerAddress: Rate?
  public var registrationsPerAddress: Rate?
  /// Upgrades, and ordinary requests that are forwarded.
  public var upgradesPerAddress: Rate?
  /// Admissions of one attested key, wherever it comes from.
  public var upgradesPerKey: Rate?

  public init() {}
}

/// A rate that is limited.
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
