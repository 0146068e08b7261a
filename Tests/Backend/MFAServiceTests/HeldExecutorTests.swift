import ByteCoding
import Foundation
import Glibc
import Locking
import Logging
import MFADomain
import MFAFixtures
import MFAService
import NIOPosix
import TestSupport
import Testing

/// Fills every thread that runs requests, and asks what must not wait for them.
@Suite("Requests that hold their threads", .serialized, .timeLimit(.minutes(2)))
struct HeldExecutorTests {
  /// Verifies no token: it holds the thread of its request until the test releases it.
  private final class HoldingVerifier: IdentityTokenVerifier {
    private let state = NSCondition()
    // Guarded by `state`.
    nonisolated(unsafe) private var held = 0
    nonisolated(unsafe) private var isReleased = false

    func subject(of token: String, nonce: String, at now: Timestamp) async throws -> ProviderSubject {
      hold()
      throw FederationRejection.malformed
    }

    private func hold() {
      state.lock()
      defer { state.unlock() }
      held += 1
      state.broadcast()
      while !isReleased { state.wait() }
    }

    /// Blocks until `count` requests are held, or until `end`.
    func waitUntilHeld(_ count: Int, until end: Date) -> Bool {
      state.lock()
      defer { state.unlock() }
      while held < count { if !state.wait(until: end) { return false } }
      return true
    }

    func release() {
      state.lock()
      defer { state.unlock() }
      isReleased = true
      state.broadcast()
    }
  }

  private static func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n" }

  @Test("while every thread of requests is held, the admin socket and the probes answer")
  func held() async throws {
    let verifier = HoldingVerifier()
    defer { verifier.release() }
    try await TestBackend.with(verifier: verifier) { backend in
      try await Places.withTemporaryFolder { folder in
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let operations = BackendOperations(
          checks: { [] },
          status: {
            BackendStatus(
              version: "1", ready: true, checks: [], uptimeSeconds: 1, address: "a", sockets: 0, delivery: [],
              store: "s", configuration: BackendStatus.Configuration(file: nil, loadedAt: "t", fault: nil))
          },
          metrics: { Array("up 1\n".utf8) }, reload: { .done(needingRestart: []) }, drain: {})
        let socket = folder + "/admin.sock"
        let monitoring = folder + "/metrics.sock"
        let servers = Task {
          await withThrowingTaskGroup { group in
            group.addTask {
              try await AdminServer(AdminRouter(operations, surface: .operators), path: socket, logger: logger).run()
            }
            group.addTask {
              try await MetricsServer(
                AdminRouter(operations, surface: .monitoring), address: .unix(path: monitoring), logger: logger
              ).run()
            }
          }
        }
        defer { servers.cancel() }
        for path in [socket, monitoring] {
          while !FileManager.default.fileExists(atPath: path), !Task.isCancelled { await Task.yield() }
        }
        let loops = MultiThreadedEventLoopGroup.singleton.makeIterator().reduce(0) { count, _ in count + 1 }
        var requests: [String] = []
        let body = "{\"idToken\":\"a.b.c\",\"challengeId\":\"00000000-0000-4000-8000-000000000000\"}"
        for _ in 1...(4 * loops) {
          let assertion = try await backend.gate.assertion(for: .genuine(), of: ("POST", "/api/v1/auth/oidc"))
          requests.append(
            "POST /api/v1/auth/oidc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              + "Content-Length: \(body.utf8.count)\r\nX-Attest-Assertion: \(assertion)\r\n\r\n\(body)")
        }
        let texts = requests
        try await BlockingConnection.onThread {
          // Each connection has a loop before any loop is held.
          let connections = try texts.map { _ in
            let connection = try BlockingConnection(port: backend.port)
            connection.send(Self.get("/.well-known/jwks.json"))
            #expect(connection.receive(until: "}").hasPrefix("HTTP/1.1 200"))
            return connection
          }
          defer { for connection in connections { connection.close() } }
          for (connection, text) in zip(connections, texts) { connection.send(text) }
          #expect(verifier.waitUntilHeld(loops, until: Date(timeIntervalSinceNow: 60)))
          for (path, target, content) in [
            (socket, "/livez", "ok\n"), (socket, "/v1/status", "\"ready\""), (socket, "/readyz", "ready\n"),
            (monitoring, "/livez", "ok\n"), (monitoring, "/readyz", "ready\n"), (monitoring, "/metrics", "up 1\n"),
          ] {
            let connection = try BlockingConnection(path: path)
            defer { connection.close() }
            connection.send(Self.get(target))
            let answer = connection.receive(until: content)
            #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains(content), "\(path) \(target): \(answer)")
          }
          verifier.release()
          for connection in connections {
            #expect(connection.receive(until: "}").hasPrefix("HTTP/1.1 401"))
          }
        }
      }
    }
  }
}
