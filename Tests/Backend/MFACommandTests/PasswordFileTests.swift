import Foundation
import MFAFixtures
import PostgresServers
import TestSupport
import Testing

@Suite("The password file of the database", .serialized, .timeLimit(.minutes(5)))
struct PasswordFileTests {
  private func enrol(_ name: String, at backend: BackendProcess, of place: BackendInstallation) async throws -> Int {
    let phone = TestPhone(username: name)
    return try await curl(
      "POST", "http://127.0.0.1:\(backend.port ?? 0)/api/v1/mfa/enroll", phone.enrolment(),
      ["-H", "X-Attest-Assertion: \(try await place.gate.assertion(for: phone.app))"]
    ).status
  }

  /// Writes a new file in the place of the old one, as tools for secrets do.
  private func write(_ text: String, to name: String, of place: BackendInstallation) throws {
    try place.write(text, toPrivate: name + ".new")
    #expect(rename(place.folder + "/" + name + ".new", place.folder + "/" + name) == 0)
  }

  @Test(
    "a backend goes on without a restart after the password, its file and all connections have changed",
    arguments: [true, false])
  func changed(isOurs: Bool) async throws {
    let (server, url) = try await PostgresServer.start(role: "backend", password: "first")
    try await BackendInstallation.make { place in
      // The file of the setting has the password alone; that of libpq has lines with places.
      let line = { (password: String) in isOurs ? "\(password)\n" : "*:*:*:backend:\(password)\n" }
      try write(line("first"), to: "db.password", of: place)
      if isOurs {
        try place.configure("database_password_file: db.password", database: url)
      } else {
        try place.configure(database: url + "&passfile=\(place.folder)/db.password")
      }
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      try await place.serving { backend in
        #expect(try await enrol("ada", at: backend, of: place) == 200)
        try await server.change(role: "backend", to: "second")
        #expect(try await enrol("bob", at: backend, of: place) == 503)
        try write(line("second"), to: "db.password", of: place)
        var status = 0
        for _ in 0..<300 where status != 200 {
          status = try await enrol("eve", at: backend, of: place)
          if status != 200 { try await Task.sleep(for: .milliseconds(100)) }
        }
        #expect(status == 200)
        #expect(try await backend.stop() == .code(0))
      }
      let users = try await place.operate("admin", "users")
      #expect(users.exit == .code(0) && users.output.joined().contains("eve"), "\(users)")
    }
    withExtendedLifetime(server) {}
  }

  @Test("a password file that every user can read, or that is missing or empty, is refused by check")
  func refused() async throws {
    try await BackendInstallation.make { place in
      try place.configure("database_password_file: db.password", database: "postgres://backend@127.0.0.1:1/x")
      let path = place.folder + "/db.password"
      for (text, mode, reason) in [
        (nil, 0, "cannot be read"), ("", 0o600, "is empty"), ("first\n", 0o644, "every user of this machine can read"),
      ] as [(String?, mode_t, String)] {
        if let text { try place.write(text, toPrivate: "db.password") }
        if text != nil { #expect(chmod(path, mode) == 0) }
        let run = try await place.operate("check", "--offline")
        #expect(run.exit == .code(78), "\(run)")
        let error = run.errors.first ?? ""
        #expect(error.contains("database_password_file: ") && error.contains(reason), "\(run)")
        #expect(!run.errors.joined().contains("first"))
      }
    }
  }
}
