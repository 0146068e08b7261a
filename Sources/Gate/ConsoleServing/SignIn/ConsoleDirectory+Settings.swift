public import ConfigurationEngine

extension ConsoleDirectory {
  /// The roles of the settings.
  public init(_ console: ConsoleSettings) {
    self.init(
      subjects: console.people.map(Entry.init), issuer: console.provider?.issuer,
      groups: console.provider?.groups.map(Entry.init) ?? [])
  }
}

extension ConsoleDirectory.Entry {
  fileprivate init(_ entry: ConsoleSettings.Entry) { self.init(entry.name, ConsoleRole(entry.role)) }
}

extension ConsoleRole {
  fileprivate init(_ role: ConsoleSettings.Role) {
    switch role {
    case .view: self = .view
    case .support: self = .support
    case .admin: self = .admin
    }
  }
}
