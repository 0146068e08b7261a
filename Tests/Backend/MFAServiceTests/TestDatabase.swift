import MFADomain
import MFAStore
import PostgresServers
import Testing

/// The databases that the backend supports.
enum TestDatabase: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case sqlite = "SQLite"
  case postgres = "PostgreSQL"

  var testDescription: String { rawValue }

  /// Opens an empty database for one test.
  func open() async throws -> any Store {
    switch self {
    case .sqlite: try SQLiteMFAStore.ephemeral()
    case .postgres: try PostgresMFAStore(url: try await PostgresServer.shared().newURL())
    }
  }

  /// Returns a function that opens the same database at each call, like several processes.
  func opener(in folder: String) async throws -> () throws -> any Store {
    switch self {
    case .sqlite: return { try SQLiteMFAStore(path: folder + "/mfa.db") }
    case .postgres:
      let url = try await PostgresServer.shared().newURL()
      return { try PostgresMFAStore(url: url) }
    }
  }
}
