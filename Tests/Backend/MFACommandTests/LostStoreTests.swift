import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("A database that cannot be written", .serialized, .timeLimit(.minutes(5)))
struct LostStoreTests {
  private func enrol(_ phone: TestPhone, at backend: BackendProcess, of place: BackendInstallation) async throws -> Int
  {
    try await curl(
      "POST", "http://127.0.0.1:\(backend.port ?? 0)/api/v1/mfa/enroll", phone.enrolment(),
      ["-H", "X-Attest-Assertion: \(try await place.gate.assertion(for: phone.app))"]
    ).status
  }

  /// Waits until the backend is ready, or is not, and returns its lines about its state.
  private func readiness(of place: BackendInstallation, becomes status: Int) async throws -> String {
    var answer = try await place.admin("GET", "/readyz?verbose")
    for _ in 0..<300 where answer.status != status {
      try await Task.sleep(for: .milliseconds(100))
      answer = try await place.admin("GET", "/readyz?verbose")
    }
    #expect(answer.status == status, "\(answer.text)")
    return answer.text
  }

  @Test("a file that was moved away is noticed: no write is answered with success, and the file can be put back")
  func moved() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        #expect(try await enrol(TestPhone(username: "ada"), at: backend, of: place) == 200)
        let names = ["mfa.db", "mfa.db-wal", "mfa.db-shm"]
        for name in names { try move(name, to: name + ".away", in: place.folder) }
        #expect(try await enrol(TestPhone(username: "bob"), at: backend, of: place) == 503)
        #expect(try await readiness(of: place, becomes: 503).contains("was deleted or replaced while in use"))
        for name in names { try move(name + ".away", to: name, in: place.folder) }
        #expect(try await enrol(TestPhone(username: "eve"), at: backend, of: place) == 200)
        _ = try await readiness(of: place, becomes: 200)
        #expect(try await backend.stop() == .code(0))
      }
      let users = try await place.users().joined()
      #expect(users.contains("ada") && users.contains("eve") && !users.contains("bob"), "\(users)")
    }
  }

  @Test("a backend that reads and cannot write is not ready, until it can")
  func writesFail() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { backend in
        #expect(try await enrol(TestPhone(username: "ada"), at: backend, of: place) == 200)
        let holder = try ChildProcess(
          Places.tool("python3"),
          [
            "-c",
            """
            import sqlite3, sys, time
            db = sqlite3.connect(sys.argv[1], isolation_level=None)
            db.execute("BEGIN IMMEDIATE")
            print("held", file=sys.stderr, flush=True)
            time.sleep(120)
            """, place.folder + "/mfa.db",
          ])
        defer { holder.kill() }
        _ = try await holder.errors.first("the lock") { $0 == "held" }
        #expect(try await enrol(TestPhone(username: "bob"), at: backend, of: place) == 503)
        #expect(try await readiness(of: place, becomes: 503).contains("store: failing since"))
        holder.kill()
        // Without any other request.
        _ = try await readiness(of: place, becomes: 200)
        #expect(try await enrol(TestPhone(username: "bob"), at: backend, of: place) == 200)
      }
    }
  }

  @Test(
    "a backend with a full disk is not ready, until there is room again",
    .enabled(if: SmallDisk.isPermitted, "this user may not mount a disk"))
  func fullDisk() async throws {
    try await BackendInstallation.make { place in
      try await SmallDisk.with(kibibytes: 4096) { disk in
        try place.configure(database: "sqlite://\(disk.path)/mfa.db")
        try await place.serving { backend in
          #expect(try await enrol(TestPhone(username: "ada"), at: backend, of: place) == 200)
          disk.fill()
          // SQLite first uses the free space in its own files.
          var count = 0
          while try await enrol(TestPhone(username: "user-\(count)"), at: backend, of: place) == 200, count < 500 {
            count += 1
          }
          #expect(count < 500, "the disk does not fill up")
          #expect(try await readiness(of: place, becomes: 503).contains("disk is full"))
          disk.makeRoom()
          _ = try await readiness(of: place, becomes: 200)
          #expect(try await enrol(TestPhone(username: "bob"), at: backend, of: place) == 200)
        }
      }
    }
  }

  private func move(_ name: String, to other: String, in folder: String) throws {
    try FileManager.default.moveItem(atPath: folder + "/" + name, toPath: folder + "/" + other)
  }
}
