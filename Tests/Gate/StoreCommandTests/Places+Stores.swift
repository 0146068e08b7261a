import AttestGate
import Databases
import Foundation
import PostgresServers
import PostgresStore
import SQLiteStore
import TestSupport
import Testing

/// The two kinds of stores. Each test gets a new store.
enum StoreKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case sqlite, postgres

  var testDescription: String { rawValue }

  /// Returns the URL of a new store. Only the schema of a PostgreSQL store exists yet.
  func newURL(in folder: String) async throws -> String {
    switch self {
    case .sqlite: "sqlite://\(folder)/\(UUID().uuidString.prefix(8)).db"
    case .postgres: try await PostgresServer.shared().newURL()
    }
  }

  func open(_ url: String) throws -> any GateStore {
    switch self {
    case .sqlite: SQLiteStore(path: String(url.dropFirst("sqlite://".count)))
    case .postgres: PostgresStore(try ConnectionParameters(url: url))
    }
  }

  func whole(_ url: String) throws -> any StoreArchive {
    switch self {
    case .sqlite: SQLiteArchive(path: String(url.dropFirst("sqlite://".count)))
    case .postgres: PostgresArchive(try ConnectionParameters(url: url))
    }
  }
}

/// The result of a command.
struct Transcript {
  let status: Int32?
  let output: [String]
  let errors: [String]

  var object: [String: Any] {
    (try? JSONSerialization.jsonObject(with: Data(output.joined().utf8))) as? [String: Any] ?? [:]
  }
}

/// Runs `sallyport store` with `arguments`.
func store(_ arguments: [String]) async throws -> Transcript {
  let answer = try await ChildProcess.run(Places.product("sallyport"), ["store"] + arguments)
  return Transcript(status: answer.exit.code, output: answer.output, errors: answer.errors)
}

func store(_ arguments: String...) async throws -> Transcript { try await store(arguments) }
