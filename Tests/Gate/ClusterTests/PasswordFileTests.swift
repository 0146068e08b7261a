import Foundation
import GateProcesses
import PostgresServers
import TestSupport
import Testing

@Suite("The password file of the store", .timeLimit(.minutes(5)))
struct PasswordFileTests {
  @Test("A gate goes on without a restart after the password, its file and all connections have changed")
  func changed() async throws {
    let (server, url) = try await PostgresServer.start(role: "gate", password: "first")
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/store.password"
      func write(_ password: String) throws {
        // A new file in the place of the old one, as tools for secrets write it.
        try "\(password)\n".write(toFile: file + ".new", atomically: true, encoding: .utf8)
        #expect(chmod(file + ".new", 0o600) == 0 && rename(file + ".new", file) == 0)
      }
      try write("first")
      var plan = GatePlan()
      (plan.storeURL, plan.storePasswordFile) = (url, file)
      let gate = try await GateProcess(plan, in: folder + "/gate")
      defer { gate.process.kill() }
      let visitor = try Visitor(to: gate)
      try await visitor.register(try Phone(of: gate.authority))

      try await server.change(role: "gate", to: "second")
      // With the old password the gate cannot connect.
      try await eventually("the outage") {
        gate.process.errors.lines.contains { $0.contains("password authentication failed") }
      }
      await #expect(throws: (any Error).self) { try await visitor.register(try Phone(of: gate.authority)) }
      try write("second")
      try await eventually("a registration") {
        (try? await visitor.register(try Phone(of: gate.authority))) != nil
      }
    }
    withExtendedLifetime(server) {}
  }

  private func eventually(_ what: String, _ isTrue: () async throws -> Bool) async throws {
    for _ in 0..<1200 {
      if try await isTrue() { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    Issue.record("\(what) did not come in a minute")
  }
}
