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

    /// Signs in, and returns the statuses of both answers.
    func signIn() async throws -> [Int] {
      let challenge = try await post("/auth/initiate", phone.naming)
      let answer = try await post(
        "/auth/verify-signature",
        [
          "username": .string(phone.username), "deviceId": .string(phone.deviceID),
          "challengeId": challenge["challengeId"] ?? nil,
          "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
        ])
      return [challenge.status, answer.status]
    }
  }

  /// What clients of two backends have done.
  private struct Progress: Sendable {
    /// The number of stops of the first backend until now.
    var stops = 0
    /// The number of answers of the first backend.
    var written = 0
    /// The statuses of the sign-ins at the second backend, by the number of stops at their begin.
    var signIns: [Int: [Int]] = [:]
  }

  @Test("while one of two backends is stopped under load, at any point of a transaction, the other one signs users in")
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
        let (isOver, progress) = (LockedValue(false), Watched(Progress()))
        let load = Task {
          await withTaskGroup { group in
            for (index, client) in clients.enumerated() {
              group.addTask {
                while !isOver.withLock({ $0 }) {
                  // The first backend writes all the time, and excludes all other writers, so most stops find it with
                  // its locks. Meanwhile it answers nothing.
                  guard index % 2 == 1 else {
                    if (try? await client.post("/mfa/enroll", client.phone.enrolment())) != nil {
                      progress.update { $0.written += 1 }
                    }
                    continue
                  }
                  let stop = progress.value.stops
                  let statuses = (try? await client.signIn()) ?? [0]
                  progress.update { $0.signIns[stop, default: []] += statuses }
                }
              }
            }
            await group.waitForAll()
          }
        }
        defer { isOver.withLock { $0 = true } }
        for stop in 1...20 {
          // It continued after the last stop, and is at any point of a transaction.
          let written = progress.value.written
          _ = try await progress.wait(for: "writes", within: .seconds(120)) {
            $0.written > written + stop % 7 ? true : nil
          }
          stopped.process.send(SIGSTOP)
          progress.update { $0.stops = stop }
          defer { stopped.process.send(SIGCONT) }
          // Sign-ins that began after the stop end before the stopped backend continues: two for each client.
          let statuses = try await progress.wait(for: "sign-ins", within: .seconds(120)) { progress in
            progress.signIns[stop].flatMap { $0.count >= 24 ? $0 : nil }
          }
          #expect(statuses.allSatisfy { $0 == 200 }, "\(statuses)")
        }
        isOver.withLock { $0 = true }
        await load.value
        #expect(try await place.operate("audit", "verify").exit == .code(0))
      }
    }
    withExtendedLifetime(server) {}
  }
}
