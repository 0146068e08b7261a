import Foundation
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Store outages", .serialized, .timeLimit(.minutes(10)))
struct StoreOutageTests {
  @Test("During an outage new sockets are refused and open ones stay; after it no restart is needed")
  func locked() async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let socket = try await visitor.open(device.headers(over: await visitor.challenge(), count: 1))
      let credentials = try device.headers(over: await visitor.challenge(), count: 2)
      let state = try StateFile(of: gate)
      try state.lock()

      let refused = try await visitor.refusal(of: credentials)
      #expect(refused.status == 503)
      #expect(refused.headers.first("X-Attest-Error") == "store_unavailable")
      #expect(refused.headers.first("Retry-After") == "5")
      let entry = try await gate.log.refusal(of: refused.headers.first("X-Request-Id") ?? "")
      #expect(entry.step == "store_locked")
      #expect(entry.level == "error")
      try await expectEcho(over: socket)

      try state.unlock()
      // The refusal has spent nothing, so the same credentials are still valid.
      try await expectEcho(over: visitor.open(credentials))
      try await expectEcho(over: socket)
    }
  }

  @Test("During an outage calls over the limit are refused immediately, and waiting ones are served after it")
  func overloaded() async throws {
    let backend = try await EchoBackend()
    let configuration = GateConfiguration(upstream: backend.upstream, mostWaiting: 2)
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let crowd = try await Crowd(of: 8, at: visitor)
      let attempts = try await crowd.upgradeWhileLocked()
      let refusals = attempts.compactMap(\.refusal)
      // Two calls may wait, in addition to the one whose transaction waits for the lock. So five are refused; six if
      // all arrived before that transaction began; fewer if some arrived only after the first refusal had released
      // the lock.
      #expect((1...6).contains(refusals.count))
      for refused in refusals {
        #expect(refused.status == 503)
        #expect(String(decoding: refused.body, as: UTF8.self) == "The gate is overloaded: try again later")
        #expect(refused.headers.first("X-Attest-Error") == "overloaded")
        #expect(refused.headers.first("Retry-After") == "1")
        let entry = try await gate.log.refusal(of: refused.headers.first("X-Request-Id") ?? "")
        #expect(entry.step == "store_overloaded")
        #expect(entry.level == "error")
      }
      for socket in attempts.compactMap(\.socket) { try await expectEcho(over: socket) }
      // The refusals have spent nothing.
      for attempt in attempts where attempt.socket == nil {
        try await expectEcho(over: visitor.open(attempt.credentials))
      }
    }
  }

  @Test("A gate starts during an outage, and serves as soon as the store is available")
  func absent() async throws {
    let backend = try await EchoBackend()
    try await Places.withTemporaryFolder { folder in
      // SQLite opens no other file as a database.
      let path = folder + "/state.db"
      let isMade = FileManager.default.createFile(
        atPath: path, contents: Data(repeating: 0x78, count: 4096), attributes: [.posixPermissions: 0o600])
      try #require(isMade)
      let gate = try await RunningGate(GateConfiguration(upstream: backend.upstream), in: folder)
      defer { gate.process.kill() }
      let visitor = try Visitor(gate)
      #expect(try await visitor.send("GET", "/attest/challenge").status == 503)
      _ = try await gate.log.first("a warning") { $0.message.hasPrefix("store not opened") }
      try FileManager.default.removeItem(atPath: path)
      let device = try await visitor.registeredDevice()
      try await expectEcho(over: visitor.open(device.headers(over: await visitor.challenge())))
    }
  }
}

/// Sends a message and expects the same message back.
func expectEcho(over socket: ClientWebSocket, _ text: String = "there and back") async throws {
  try await socket.send(.text(text))
  #expect(try await socket.receive() == .message(.text(text)))
}
