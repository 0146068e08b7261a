/// What the person at a console may do. Each role may do what the ones before it may.
public enum ConsoleRole: String, Sendable, Hashable, CaseIterable, Comparable {
  /// Looks at everything.
  case view
  /// Helps users: changes single devices and sessions.
  case support
  /// Changes the service.
  case admin

  public static func < (lower: ConsoleRole, upper: ConsoleRole) -> Bool { lower.rank < upper.rank }

  private var rank: Int {
    switch self {
    case .view: 0
    case .support: 1
    case .admin: 2
    }
  }
}
