import Foundation
import Glibc
import Locking
import Logging
import MFAService
import TestSupport
import Testing

@Suite("The connections of the admin socket", .serialized, .timeLimit(.minutes(2)))
struct AdminServerTests {
  /// A running admin socket.
  private struct Bench {
    let path: String
    let drains: LockedValue<Int>

    func connection(_ requests: String...) throws -> BlockingConnection {
      let connection = try BlockingConnection(path: path)
      connection.send(requests.joined())
      return connection
    }

    /// The first line of the answer on a connection of its own; empty if there is none.
    func status(of request: String) throws -> String {
      let connection = try self.connection(request)
      defer { connection.close() }
      return String(connection.receive(until: "\r\n\r\n").prefix { $0 != "\r\n" })
    }
  }

  private static let live = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
  private static let metrics = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
  private static let reload = "POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
  private static let drain = "POST /v1/drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"

  /// Calls `body` on a thread of its own.
  private func with(
    reload: @escaping @Sendable () async -> ReloadOutcome = { .done(needingRestart: []) },
    _ change: (inout AdminServer.Limits) -> Void,
    _ body: @escaping @Sendable (Bench) throws -> Void
  ) async throws {
    var limits = AdminServer.Limits()
    change(&limits)
    let chosen = limits
    try await Places.withTemporaryFolder { folder in
      let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      let bench = Bench(path: folder + "/admin.sock", drains: LockedValue(0))
      let operations = BackendOperations(
        checks: { [] },
        status: {
          BackendStatus(
            version: "1", ready: true, checks: [], uptimeSeconds: 1, address: "a", sockets: 0, delivery: [],
            store: "s", configuration: BackendStatus.Configuration(file: nil, loadedAt: "t", fault: nil))
        },
        // More than any buffer of a socket.
        metrics: { [UInt8](repeating: UInt8(ascii: "x"), count: 16 << 20) }, reload: reload,
        drain: { bench.drains.withLock { $0 += 1 } })
      let server = Task {
        try await AdminServer(
          AdminRouter(operations, surface: .operators), path: bench.path, limits: chosen, logger: logger
        ).run()
      }
      defer { server.cancel() }
      while !FileManager.default.fileExists(atPath: bench.path), !Task.isCancelled { await Task.yield() }
      try await BlockingConnection.onThread { try body(bench) }
    }
  }

  @Test("Clients that say nothing, or do not read, lock no operator out")
  func crowd() async throws {
    try await with({ $0.connections = 4 }) { bench in
      var silent = try (0..<20).map { _ in try bench.connection() }
      silent += try (0..<4).map { _ in
        let reader = try bench.connection(Self.metrics)
        #expect(reader.receive(until: "HTTP/1.1 200").hasPrefix("HTTP/1.1 200"))
        return reader
      }
      for _ in 0..<8 { #expect(try bench.status(of: Self.live) == "HTTP/1.1 200 OK") }
      #expect(silent[0].hangsUp() && silent[19].hangsUp())
      for connection in silent { connection.close() }
    }
  }

  @Test("A request in work keeps its place, and gets its answer")
  func work() async throws {
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    let hasBegun = LockedValue(false)
    try await with(
      reload: {
        hasBegun.withLock { $0 = true }
        for await _ in ends { break }
        return .done(needingRestart: [])
      }, { $0.connections = 2 }
    ) { bench in
      let working = try bench.connection(Self.reload)
      for _ in 0..<20_000 where !hasBegun.withLock(\.self) { usleep(1000) }
      let silent = try (0..<10).map { _ in try bench.connection() }
      #expect(try bench.status(of: Self.live) == "HTTP/1.1 200 OK")
      end.yield()
      #expect(working.receive(until: "}").contains("\"reloaded\":true"))
      for connection in silent + [working] { connection.close() }
    }
  }

  @Test("A connection has one request")
  func single() async throws {
    try await with({ _ in }) { bench in
      let connection = try bench.connection(Self.drain, Self.drain, Self.live)
      defer { connection.close() }
      #expect(connection.receive(until: "}").hasPrefix("HTTP/1.1 202"))
      #expect(connection.hangsUp())
      // The others would have been done before this one is answered.
      #expect(try bench.status(of: Self.live) == "HTTP/1.1 200 OK")
      #expect(bench.drains.withLock(\.self) == 1)
    }
  }

  @Test("A client that says nothing, and one that never reads, end with their time")
  func slow() async throws {
    try await with({ $0.request = .milliseconds(100) }) { bench in
      let silent = [try bench.connection(), try bench.connection(String(Self.live.prefix(20)))]
      for connection in silent {
        #expect(connection.hangsUp())
        connection.close()
      }
    }
    try await with({ $0.exchange = .milliseconds(300) }) { bench in
      let reader = try bench.connection(Self.metrics)
      #expect(reader.hangsUp())
      reader.close()
    }
  }

  @Test("A request that is too large ends its connection, before it is parsed")
  func large() async throws {
    try await with({ $0.bytes = 4096 }) { bench in
      let large = "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "x", count: 5000)
      let connection = try bench.connection(large)
      #expect(connection.hangsUp())
      connection.close()
      #expect(try bench.status(of: Self.live) == "HTTP/1.1 200 OK")
    }
  }
}
