import ByteCoding
import Foundation
import Glibc
import MFADomain
import MFAFixtures
import TestSupport
import Testing

/// A folder with a configuration file, and commands on it.
struct BackendInstallation: Sendable {
  let folder: String
  let gate: TestGate

  var file: String { folder + "/mfa.yaml" }
  var socket: String { folder + "/admin.sock" }
  var database: String { "sqlite://\(folder)/mfa.db" }

  /// Calls `body` with a folder that has a keys file and a valid configuration.
  static func make<R>(_ body: (BackendInstallation) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let installation = BackendInstallation(folder: folder, gate: try TestGate(clock: .system))
      let keys = try await installation.mfa("keys", "make").output.joined()
      try installation.write(keys, toPrivate: "keys.json")
      try installation.configure()
      return try await body(installation)
    }
  }

  /// Writes the configuration: the required keys and `more`.
  func configure(_ more: String = "", database: String? = nil, jwks: String? = nil, listen: String = "127.0.0.1:0")
    throws
  {
    try """
    version: 1
    listen: "\(listen)"
    database: "\(database ?? self.database)"
    keys_file: keys.json
    gate: { jwks: "\(jwks ?? gate.keysFile)", issuer: "\(TestGate.issuer)", audience: \(TestGate.audience) }
    admin: { listen: "unix:\(socket)" }
    \(more)

    """.write(toFile: file, atomically: true, encoding: .utf8)
  }

  /// Writes a file that only its owner can read.
  func write(_ text: String, toPrivate name: String) throws {
    let path = folder + "/" + name
    try? FileManager.default.removeItem(atPath: path)
    try #require(
      FileManager.default.createFile(
        atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
  }

  typealias Run = (exit: ChildProcess.Exit, output: [String], errors: [String])

  /// Runs a command.
  func mfa(_ arguments: String...) async throws -> Run {
    try await ChildProcess.run(
      Places.product("mfa-backend"), arguments, environment: ["MFA_BACKEND_CONFIG": nil], in: folder)
  }

  /// Runs a command with the configuration of this folder.
  func operate(_ arguments: String...) async throws -> Run {
    try await ChildProcess.run(Places.product("mfa-backend"), arguments + ["-c", file])
  }

  /// Calls `body` with a running backend, which is stopped afterwards.
  func serving(_ body: (BackendProcess) async throws -> Void) async throws {
    let backend = try await BackendProcess(["-c", file])
    defer { backend.process.kill() }
    try await body(backend)
  }

  /// Sends a request to the admin socket.
  func admin(_ method: String, _ path: String, _ options: [String] = []) async throws -> CurlAnswer {
    try await curl(method, "http://localhost" + path, nil, ["--unix-socket", socket] + options)
  }

  /// Sends a request to the backend as an app.
  func ask(_ backend: BackendProcess, _ path: String = "/device/d/status", as app: AppInstance) async throws
    -> CurlAnswer
  {
    let assertion = "X-Attest-Assertion: \(try await gate.assertion(for: app))"
    return try await curl(
      "GET", "http://127.0.0.1:\(backend.port ?? 0)/api/v1\(path)", nil, ["-H", assertion])
  }

  // MARK: Database

  /// Enrols a phone at a backend that runs only meanwhile.
  func enrol(_ phone: TestPhone) async throws {
    try await serving { backend in
      let enrolled = try await curl(
        "POST", "http://127.0.0.1:\(backend.port ?? 0)/api/v1/mfa/enroll", phone.enrolment(),
        ["-H", "X-Attest-Assertion: \(try await gate.assertion(for: phone.app))"])
      #expect(enrolled.status == 200, "\(enrolled.text)")
      #expect(try await backend.stop() == .code(0))
    }
  }

  /// The lines of `admin users`.
  func users() async throws -> [String] { try await operate("admin", "users").output }

  /// Runs a statement on a SQLite file, and returns its rows as Python prints them.
  static func sql(_ statement: String, _ file: String) async throws -> [String] {
    try await ChildProcess.run(
      Places.tool("python3"),
      [
        "-c",
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(*db.execute(sys.argv[2]).fetchall()); db.commit()",
        file, statement,
      ]
    ).output
  }
}
