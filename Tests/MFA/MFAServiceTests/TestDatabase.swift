import MFADomain
import MFAStore
import PostgresServers
import Testing

/// The databases that everything has to work on.
enum TestDatabase: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case sqlite = "SQLite"
  case postgres = "PostgreSQL"

  var testDescription: String { rawValue }

  /// An empty one that nobody else uses.
  func open() async throws -> any Store {
    switch self {
    case .sqlite: try SQLiteMFAStore.ephemeral()
    case .postgres: try PostgresMFAStore(url: try await PostgresServer.shared().newURL())
    }
  }

  /// What opens one database again and again, as several processes do.
  func opener(in folder: String) async throws -> () throws -> any Store {
    switch self {
    case .sqlite: return { try SQLiteMFAStore(path: folder + "/mfa.db") }
    case .postgres:
      let url = try await PostgresServer.shared().newURL()
      return { try PostgresMFAStore(url: url) }
    }
  }
}
