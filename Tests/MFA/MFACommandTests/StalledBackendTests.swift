import ByteCoding
import Foundation
import Glibc
import Locking
import MFADomain
import MFAFixtures
import PostgresServers
import TestSupport
import Testing

@Suite("A stopped backend", .serialized, .timeLimit(.minutes(5)))
struct StalledBackendTests {
  /// A device that signs in at one backend.
  private struct Client: Sendable {
    let phone: TestPhone
    let gate: TestGate
    let port: Int

    func post(_ path: String, _ body: JSONValue) async throws -> Answer {
      let target = "/api/v1" + path
      return try await Answer(
        to: "POST", target, text: body.encoded,
        assertion: try await gate.assertion(for: phone.app, of: ("POST", target)), at: port)
    }

    /// Signs in, and returns the status of the last answer and the time until it.
    func signIn() async throws -> [(status: Int, time: Duration)] {
      let start = ContinuousClock.now
      let challenge = try await post("/auth/initiate", phone.naming)
      let middle = ContinuousClock.now
      let answer = try await post(
        "/auth/verify-signature",
        [
          "username": .string(phone.username), "deviceId": .string(phone.deviceID),
          "challengeId": challenge["challengeId"] ?? nil,
          "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
        ])
      return [(challenge.status, middle - start), (answer.status, ContinuousClock.now - middle)]
    }
  }

  @Test("while one of two backends is stopped under load, 99 of 100 answers of the other one come within 150 ms")
  func stopped() async throws {
    let server = try await PostgresServer.start(options: ["fsync": "off", "full_page_writes": "off"])
    try await BackendInstallation.make { place in
      try place.configure(
        """
        limits: { per_ip: { code_requests: off }, per_key: { requests: 100000/1s, code_requests: 100000/1s } }
        """, database: PostgresServer.url(of: [server]))
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      try await place.serving { stopped in
        let second = try await BackendProcess(["-c", place.file, "--admin", "unix:\(place.folder)/other.sock"])
        defer { second.process.kill() }
        let ports = [Int(stopped.port ?? 0), Int(second.port ?? 0)]
        let clients = (0..<12).map {
          Client(phone: TestPhone(username: "user-\($0)"), gate: place.gate, port: ports[$0 % 2])
        }
        for client in clients {
          #expect(try await client.post("/mfa/enroll", client.phone.enrolment()).status == 200)
        }
        let (isOver, answers) = (LockedValue(false), LockedValue<[(status: Int, time: Duration)]>([]))
        let load = Task {
          await withTaskGroup { group in
            for (index, client) in clients.enumerated() {
              group.addTask {
                while !isOver.withLock({ $0 }) {
                  // The first backend writes all the time, and excludes all other writers, so most stops find it with
                  // its locks. Meanwhile it answers nothing.
                  guard index % 2 == 1 else {
                    _ = try? await client.post("/mfa/enroll", client.phone.enrolment())
                    continue
                  }
                  guard let times = try? await client.signIn() else { continue }
                  answers.withLock { $0 += times }
                }
              }
            }
            await group.waitForAll()
          }
        }
        defer { isOver.withLock { $0 = true } }
        func measured(_ body: () async throws -> Void) async throws -> Duration {
          answers.withLock { $0 = [] }
          try await body()
          let measured = answers.withLock { $0 }
          #expect(measured.count > 100 && measured.allSatisfy { $0.status == 200 })
          let times = measured.map(\.time).sorted()
          return times.isEmpty ? .zero : times[(times.count - 1) * 99 / 100]
        }
        try await Task.sleep(for: .seconds(1))
        // A machine that is busy with other tests needs longer at all times, and not always equally long.
        var (usual, hindered) = (Duration.zero, Duration.zero)
        for _ in 1...3 {
          usual = max(usual, try await measured { try await Task.sleep(for: .seconds(3)) })
          // Stops at any point of a transaction, each longer than the server's patience.
          hindered = try await measured {
            for _ in 1...10 {
              stopped.process.send(SIGSTOP)
              try await Task.sleep(for: .milliseconds(700))
              stopped.process.send(SIGCONT)
              try await Task.sleep(for: .milliseconds(Int.random(in: 50...150)))
            }
          }
          if hindered <= max(.milliseconds(150), usual + .milliseconds(110)) { break }
        }
        #expect(hindered <= max(.milliseconds(150), usual + .milliseconds(110)), "usual \(usual), hindered \(hindered)")
        isOver.withLock { $0 = true }
        await load.value
        #expect(try await place.operate("audit", "verify").exit == .code(0))
      }
    }
    withExtendedLifetime(server) {}
  }
}
