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

  /// A connection whose calls block, since all event loops of the process are held meanwhile.
  private struct BlockingConnection: Sendable {
    let descriptor: Int32

    init(port: Int) throws {
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(UInt16(port).bigEndian)
      address.sin_addr.s_addr = in_addr_t(UInt32(0x7F00_0001).bigEndian)
      try connect(&address)
    }

    init(path: String) throws {
      descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
      try connect(&address)
    }

    private func connect<Address>(_ address: inout Address) throws {
      var limit = timeval(tv_sec: 20, tv_usec: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      let status = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
        }
      }
      guard status == 0 else { throw NotConnected(number: errno) }
    }

    struct NotConnected: Error { let number: Int32 }

    func send(_ text: String) {
      let bytes = Array(text.utf8)
      #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// Receives until `mark` has arrived; shorter if the peer closes, or says nothing for 20 s.
    func receive(until mark: String) -> String {
      var text = ""
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while !text.contains(mark) {
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { break }
        text += String(decoding: bytes.prefix(count), as: UTF8.self)
      }
      return text
    }

    func close() { Glibc.close(descriptor) }
  }

  /// Runs `body` on a thread of its own.
  private static func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
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
        try await Self.onThread {
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
