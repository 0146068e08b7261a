import AttestGate
import Databases
import Foundation
import Glibc
import PostgresServers
import StoreConformance
import TestSupport
import Testing

@testable import PostgresStore

/// A password that the owner of a role changes while stores are connected with it.
@Suite("A password that changes", .timeLimit(.minutes(5)))
struct PasswordTests {
  @Test("it is read for each connection: a store goes on after its server dropped the old connections")
  func changed() async throws {
    let (server, url) = try await PostgresServer.start(role: "gate", password: "first")
    let current = Watched("first")
    let store = PostgresStore(try ConnectionParameters(url: url) { current.value })
    try await store.open()
    #expect(try await store.register(Fixture.registration()) == .inserted)
    // New in the file first, so that no connection gets the old one afterwards.
    current.update { $0 = "second" }
    try await server.change(role: "gate", to: "second")
    try await eventually { try await store.register(Fixture.registration()) == .inserted }
    await store.close()
    withExtendedLifetime(server) {}
  }

  @Test("a store whose password does not change with its role's is unavailable, and available as soon as it does")
  func late() async throws {
    let (server, url) = try await PostgresServer.start(role: "gate", password: "first")
    let current = Watched("first")
    let store = PostgresStore(try ConnectionParameters(url: url) { current.value })
    try await store.open()
    try await server.change(role: "gate", to: "second")
    // The store notices with the next call.
    try await eventually {
      do {
        _ = try await store.register(Fixture.registration())
        return false
      } catch {
        if case .failing = store.health { return true } else { return false }
      }
    }
    current.update { $0 = "second" }
    try await eventually { try await store.register(Fixture.registration()) == .inserted }
    await store.close()
    withExtendedLifetime(server) {}
  }

  @Test("libpq reads the passfile of a URL for each connection, too")
  func passfile() async throws {
    let (server, url) = try await PostgresServer.start(role: "gate", password: "first")
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/passfile"
      func write(_ password: String) throws {
        try "*:*:*:gate:\(password)\n".write(toFile: file, atomically: true, encoding: .utf8)
        #expect(chmod(file, 0o600) == 0)
      }
      try write("first")
      let store = PostgresStore(try ConnectionParameters(url: url + "&passfile=\(file)"))
      try await store.open()
      try write("second")
      try await server.change(role: "gate", to: "second")
      try await eventually { try await store.register(Fixture.registration()) == .inserted }
      await store.close()
    }
    withExtendedLifetime(server) {}
  }

  @Test("a password that cannot be read makes a connection fail, with the reason")
  func unreadable() async throws {
    let (server, url) = try await PostgresServer.start(role: "gate", password: "first")
    let parameters = try ConnectionParameters(url: url) { () throws(ConnectionParameters.Malformed) -> String in
      throw ConnectionParameters.Malformed(reason: "store.password_file: no such file")
    }
    let store = PostgresStore(parameters)
    await #expect(throws: StoreError.unreachable(reason: "store.password_file: no such file")) {
      try await store.open()
    }
    await store.close()
    withExtendedLifetime(server) {}
  }

  private func eventually(_ isTrue: () async throws -> Bool) async throws {
    for _ in 0..<1200 {
      if (try? await isTrue()) == true { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    Issue.record("it did not become true in a minute")
  }
}
