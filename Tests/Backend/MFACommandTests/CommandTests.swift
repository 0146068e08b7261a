import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("Commands of the backend", .serialized, .timeLimit(.minutes(10)))
struct CommandTests {
  private let gate: TestGate

  init() throws { gate = try TestGate(clock: .system) }

  /// Sends a request to a backend with curl.
  private func ask(
    _ backend: BackendProcess, _ method: String, _ path: String, _ body: JSONValue? = nil, as app: AppInstance,
    token: String? = nil
  ) async throws -> CurlAnswer {
    let port = try #require(backend.port)
    return try await curl(
      method, "http://127.0.0.1:\(port)/api/v1\(path)", body, token: token,
      ["-H", "X-Attest-Assertion: \(try await gate.assertion(for: app))"])
  }

  private func mfa(
    _ arguments: [String], in folder: String? = nil
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(Places.product("mfa-backend"), arguments, in: folder)
  }

  /// Calls `body` with a backend whose database is in `folder`, and stops the backend afterwards.
  private func withDatabase(
    in folder: String, _ more: [String] = [], _ body: (BackendProcess) async throws -> Void
  ) async throws {
    if !FileManager.default.fileExists(atPath: folder + "/keys.json") {
      let made = try await mfa(["keys", "make"])
      try Self.write(made.output.joined(), toPrivate: folder + "/keys.json")
    }
    let backend = try await BackendProcess(
      Self.database(folder) + ["--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate) + more)
    defer { backend.process.kill() }
    try await body(backend)
    #expect(try await backend.stop() == .code(0))
  }

  /// Writes a file that only its owner can read.
  private static func write(_ text: String, toPrivate path: String) throws {
    try? FileManager.default.removeItem(atPath: path)
    #expect(
      FileManager.default.createFile(
        atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
  }

  private static func database(_ folder: String) -> [String] {
    ["--database", "sqlite://\(folder)/mfa.db", "--keys", folder + "/keys.json"]
  }

  @Test("A-071 the contents of a database file are present after a restart")
  func kept() async throws {
    try await Places.withTemporaryFolder { folder in
      let phone = TestPhone()
      try await withDatabase(in: folder) { backend async throws in
        #expect(try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
      }
      try await withDatabase(in: folder) { backend async throws in
        let status = try await ask(backend, "GET", "/device/\(phone.deviceID)/status", as: phone.app)
        #expect(status["enrolled"] == true)
      }
    }
  }

  @Test("A-123 with --ephemeral the database is empty after a restart, and no file remains")
  func ephemeral() async throws {
    try await Places.withTemporaryFolder { folder in
      let phone = TestPhone()
      for attempt in 1...2 {
        let backend = try await BackendProcess(
          ["--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate), in: folder)
        defer { backend.process.kill() }
        let status = try await ask(backend, "GET", "/device/\(phone.deviceID)/status", as: phone.app)
        #expect(status["enrolled"] == false, "start \(attempt)")
        #expect(try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
        #expect(try await backend.stop() == .code(0))
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }
  }

  @Test(
    "T-21 A-185 the backend listens only on loopback and Unix sockets, because it has no TLS",
    arguments: ["0.0.0.0:0", "192.0.2.1:8080", "[::]:0", "example.com:80"])
  func loopbackAlone(_ place: String) async throws {
    let run = try await mfa(["run", "--ephemeral", "--listen", place] + BackendProcess.trusting(gate))
    #expect(run.exit == .code(78))
    #expect(
      run.errors
        == [
          "error: --listen: listen: must be ADDRESS:PORT on loopback or unix:/path, because the backend has no TLS",
          "hint: mfa-backend check --reference lists every key with its values",
        ])
  }

  @Test("A-122 mfa-backend listens on 127.0.0.1:8080, and a file, a variable or a flag can change the address")
  func defaults() async throws {
    let version = try await mfa(["--version"])
    #expect(version.exit == .code(0) && version.output.count == 1)
    let help = try await mfa(["run", "--help"]).output.joined(separator: "\n")
    #expect(help.contains("USAGE: mfa-backend run"))
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/mfa.yaml"
      try """
      database: ephemeral
      listen: 127.0.0.1:1
      gate: { jwks: "\(gate.keysFile)", issuer: "\(TestGate.issuer)", audience: \(TestGate.audience) }

      """.write(toFile: file, atomically: true, encoding: .utf8)
      let wrong = try await ChildProcess.run(
        Places.product("mfa-backend"), ["check", "--offline", "-c", file],
        environment: ["MFA_BACKEND_LISTEN": "0.0.0.0:2"])
      #expect(wrong.errors.first?.hasPrefix("error: MFA_BACKEND_LISTEN: listen: ") == true, "\(wrong.errors)")
      let backend = try await BackendProcess(
        ["-c", file, "--listen", "127.0.0.1:0"], environment: ["MFA_BACKEND_LISTEN": "127.0.0.1:2"])
      defer { backend.process.kill() }
      #expect(try await ask(backend, "GET", "/device/d/status", as: .genuine()).status == 200)
    }
  }

  @Test("the socket of a running backend is not replaced, and a stale socket is replaced")
  func takenSocket() async throws {
    try await Places.withTemporaryFolder { folder in
      let socket = folder + "/mfa.sock"
      let options = ["--ephemeral", "--listen", "unix:" + socket] + BackendProcess.trusting(gate)
      let first = try await BackendProcess(options)
      defer { first.process.kill() }
      let second = try await mfa(["run"] + options)
      #expect(second.exit == .code(71))
      #expect(second.errors.first == "error: cannot serve: another process listens at unix:\(socket)")
      func status() async throws -> Int {
        let assertion = "X-Attest-Assertion: \(try await gate.assertion(for: .genuine()))"
        return try await curl(
          "GET", "http://mfa/api/v1/device/d/status", nil, ["-H", assertion, "--unix-socket", socket]
        ).status
      }
      #expect(try await status() == 200)
      first.process.kill()
      _ = try await first.process.exit(within: .seconds(20))
      #expect(FileManager.default.fileExists(atPath: socket))
      let third = try await BackendProcess(options)
      defer { third.process.kill() }
      #expect(try await status() == 200)
      #expect(try await third.stop() == .code(0))
    }
  }

  @Test("a secret file that every user can read is refused")
  func publicSecret() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/token"
      try "secret\n".write(toFile: file, atomically: true, encoding: .utf8)
      #expect(chmod(file, 0o644) == 0)
      let run = try await mfa(
        ["run", "--ephemeral", "--listen", "127.0.0.1:0", "--sms-account", "AC", "--sms-token-file", file]
          + ["--sms-from", "+1234567890"] + BackendProcess.trusting(gate))
      #expect(run.exit == .code(78))
      #expect(run.errors.first == "error: every user of this machine can read the secret file \(file)")
    }
  }

  struct StartError: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let arguments: [String]
    let status: Int32
    /// The beginning of the first line.
    let error: String
  }

  private static let requiredFlags = ["--gate-issuer", "i", "--audience", "a", "--listen", "127.0.0.1:0"]

  @Test(
    "for a file of settings that cannot be read, run and check advise to name another one", arguments: ["run", "check"])
  func noSettings(_ command: String) async throws {
    let run = try await mfa([command, "-c", "/nowhere/mfa.yaml"])
    #expect(run.exit == .code(78))
    #expect(
      run.errors == [
        "error: /nowhere/mfa.yaml:1:1: cannot read the file: No such file or directory (ENOENT)",
        "hint: name a configuration file that this user can read",
      ])
  }

  static let startFaults = [
    StartError(
      testDescription: "no file of settings", arguments: ["-c", "/nowhere/mfa.yaml"], status: 78,
      error: "error: /nowhere/mfa.yaml:1:1: cannot read the file: No such file or directory (ENOENT)"),
    StartError(
      testDescription: "no file of gate keys",
      arguments: ["--ephemeral", "--gate-jwks", "/nowhere/jwks"] + requiredFlags,
      status: 78, error: "error: --gate-jwks: gate.jwks: the file with the gate's keys /nowhere/jwks cannot be read: "),
    StartError(
      testDescription: "gate keys by plain http",
      arguments: ["--ephemeral", "--gate-jwks", "http://gate.example.com/jwks.json"] + requiredFlags, status: 78,
      error: "error: --gate-jwks: gate.jwks: must be a file, an https URL, or an http URL on loopback: "),
    StartError(
      testDescription: "malformed gate keys", arguments: ["--ephemeral", "--gate-jwks", "/etc/passwd"] + requiredFlags,
      status: 78, error: "error: /etc/passwd: not a JSON object with keys"),
    StartError(
      testDescription: "no root of the gate",
      arguments: ["--ephemeral", "--gate-jwks", "https://127.0.0.1:1/", "--gate-ca", "/nowhere/ca.pem"] + requiredFlags,
      status: 78, error: "error: --gate-ca: gate.ca_file: the gate's root file /nowhere/ca.pem cannot be read: "),
    StartError(
      testDescription: "a database password that is not percent-encoded",
      arguments: ["--database", "postgres://u:se/cret@127.0.0.1/x", "--keys", "k", "--gate-jwks", "/k"] + requiredFlags,
      status: 78, error: "error: database: the user or the password contains an @, / or ? that is not percent-encoded"),
    StartError(
      testDescription: "an invalid port",
      arguments: ["--database", "postgres://u:secret@127.0.0.1:port/x", "--keys", "k", "--gate-jwks", "/k"]
        + requiredFlags,
      status: 78, error: "error: database: a port is not a number from 1 to 65535"),
    StartError(
      testDescription: "no database server",
      arguments: ["--database", "postgres://u:secret@127.0.0.1:1/x", "--keys", "k", "--gate-jwks", "/k"]
        + requiredFlags,
      status: 69, error: "error: the database: connection to server at \"127.0.0.1\", port 1 failed: "),
  ]

  @Test("a fault at start is reported with error lines and a status, and without a password", arguments: startFaults)
  func startFault(_ fault: StartError) async throws {
    let run = try await mfa(["run"] + fault.arguments)
    #expect(run.exit == .code(fault.status), "\(run.errors)")
    #expect(run.errors.first?.hasPrefix(fault.error) == true, "\(run.errors)")
    #expect(run.errors.allSatisfy { $0.hasPrefix("error: ") || $0.hasPrefix("hint: ") }, "\(run.errors)")
    #expect(!run.errors.contains { $0.contains("cret") })
  }

  @Test("the backend does not start without the root file of the mail server")
  func noMailRoot() async throws {
    let run = try await mfa(
      ["run", "--ephemeral", "--listen", "127.0.0.1:0", "--smtp", "localhost:25", "--smtp-from", "a@example.com"]
        + ["--smtp-ca", "/nowhere/ca.pem"] + BackendProcess.trusting(gate))
    // As for `check`: a service manager does not start it again.
    #expect(run.exit == .code(78))
    #expect(run.errors.first?.contains("email.ca_file") == true, "\(run.errors)")
    #expect(
      run.errors.first?.contains("the mail server's root file /nowhere/ca.pem cannot be read: ") == true,
      "\(run.errors)")
  }

  @Test("every file that a configuration names and that is missing is reported at a start, with its place")
  func missingFiles() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/mfa.yaml"
      try """
      database: sqlite:///\(folder.dropFirst())/mfa.db
      keys_file: absent.json
      gate:
        jwks: absent.jwks
        issuer: https://gate:6200
        audience: mfa
      """.write(toFile: file, atomically: true, encoding: .utf8)
      let run = try await mfa(["run", "-c", file])
      #expect(run.exit == .code(78), "\(run.errors)")
      for place in ["mfa.yaml:2:12: keys_file", "mfa.yaml:4:9: gate.jwks"] {
        #expect(run.errors.contains { $0.contains(place) }, "\(place): \(run.errors)")
      }
    }
  }

  @Test("the second backend at an address exits with 71 and names the address")
  func addressInUse() async throws {
    let backend = try await BackendProcess(
      ["--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate))
    defer { backend.process.kill() }
    let place = "127.0.0.1:\(try #require(backend.port))"
    let second = try await mfa(["run", "--ephemeral", "--listen", place] + BackendProcess.trusting(gate))
    #expect(second.exit == .code(71))
    let lines = second.errors.filter { !$0.hasPrefix("{") }
    #expect(lines.count == 2 && lines.first?.contains("Address already in use") == true, "\(second.errors)")
    #expect(lines.last?.hasPrefix("hint: see which process listens at \(place)") == true)
  }

  @Test("duplicate keys, malformed keys and an absent file of keys each have an exit status")
  func unfitKeys() async throws {
    try await Places.withTemporaryFolder { folder in
      let key = "{\"name\":\"a\",\"key\":\"\(Data(count: 32).base64EncodedString())\"}"
      for (text, status, reason) in [
        (
          nil, 78,
          "--keys: keys_file: the keys file \(folder)/keys.json cannot be read: No such file or directory (ENOENT)"
        ),
        ("{}", 78, "\(folder)/keys.json: not a JSON list of objects with name and key"),
        ("[]", 78, "\(folder)/keys.json: no key"),
        ("[\(key),\(key)]", 78, "\(folder)/keys.json: two keys have the same name"),
      ] as [(String?, Int32, String)] {
        if let text { try Self.write(text, toPrivate: folder + "/keys.json") }
        let run = try await mfa(["run"] + Self.database(folder) + BackendProcess.trusting(gate))
        #expect(run.exit == .code(status) && run.errors.first == "error: \(reason)", "\(run.errors)")
      }
    }
  }

  @Test("a file of keys that others can read is refused, and one that its group can read gives a warning")
  func readableKeys() async throws {
    try await Places.withTemporaryFolder { folder in
      try await withDatabase(in: folder) { _ async throws in }
      let file = folder + "/keys.json"
      #expect(chmod(file, 0o644) == 0)
      let refused = try await mfa(["admin", "users"] + Self.database(folder))
      #expect(refused.exit == .code(78))
      #expect(refused.errors.first == "error: every user of this machine can read the keys file \(file)")
      #expect(chmod(file, 0o640) == 0)
      let warned = try await mfa(["admin", "users"] + Self.database(folder))
      #expect(warned.exit == .code(0))
      #expect(warned.errors == ["warning: the keys file \(file) is readable by its group"])
    }
  }

  @Test("keys make refuses an empty name, with which no command would read the file")
  func namelessKey() async throws {
    let refused = try await mfa(["keys", "make", "--name", ""])
    #expect(refused.exit == .code(64) && refused.output.isEmpty, "\(refused)")
    #expect(refused.errors.first == "error: --name: the name of a key is not empty")
    #expect(try await mfa(["keys", "make", "--name", "spring"]).exit == .code(0))
  }

  @Test("a command that cannot write its output exits with 74")
  func fullOutput() async throws {
    try await Places.withTemporaryFolder { folder in
      try await withDatabase(in: folder) { backend async throws in
        let phone = TestPhone()
        _ = try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app)
      }
      let program = try Places.product("mfa-backend")
      for command in [["keys", "make"], ["audit", "export", "--database", "sqlite://\(folder)/mfa.db"]] {
        let run = try await ChildProcess.run(
          Places.tool("bash"), ["-c", "exec \"$@\" > /dev/full", "bash", program] + command)
        #expect(run.exit == .code(74), "\(command)")
        #expect(
          run.errors == ["error: standard output: No space left on device", "hint: name a place that has room"])
      }
    }
  }

  @Test("a reader that has gone has what it wants: the command exits with 0 and without a message")
  func closedOutput() async throws {
    try await Places.withTemporaryFolder { folder in
      try await withDatabase(in: folder) { _ async throws in }
      let program = try Places.product("mfa-backend")
      let database = Self.database(folder)
      for command in [["keys", "make"], ["audit", "verify"] + database, ["audit", "export"] + database] {
        // The reader closes the pipe before the command starts.
        let script = "exec 3> >(exit); wait $!; \"$@\" >&3; echo $?"
        let run = try await ChildProcess.run(Places.tool("bash"), ["-c", script, "bash", program] + command)
        #expect(run.output == ["0"] && run.errors.isEmpty, "\(run.output) \(run.errors)")
      }
    }
  }

  @Test("a client that stalls during a request does not prevent shutdown")
  func stalledClient() async throws {
    let backend = try await BackendProcess(
      ["--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate))
    defer { backend.process.kill() }
    let head = "POST /api/v1/mfa/enroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    let request =
      head + "Content-Length: 100\r\nX-Attest-Assertion: \(try await gate.assertion(for: .genuine()))\r\n\r\n{"
    let port = try #require(backend.port)
    let client = try ChildProcess(
      Places.tool("bash"),
      ["-c", "exec 3<>/dev/tcp/127.0.0.1/\(port); printf %s \"$1\" >&3; echo sent; exec sleep 60", "bash", request])
    defer { client.kill() }
    _ = try await client.output.first("the end of what is sent") { $0 == "sent" }
    // The exit status is not checked: `stop` fails if the backend does not exit within 20 seconds.
    _ = try await backend.stop()
  }

  @Test("A-175 only with --sms-sink log, a code is written to the log in the documented form")
  func mockSMS() async throws {
    for (options, isLogged) in [(["--sms-sink", "log"], true), ([], false)] as [([String], Bool)] {
      let backend = try await BackendProcess(
        ["--ephemeral", "--listen", "127.0.0.1:0"] + options + BackendProcess.trusting(gate))
      defer { backend.process.kill() }
      let phone = TestPhone()
      let enrolment = phone.enrolment(method: "smsOTP")
      #expect(try await ask(backend, "POST", "/mfa/enroll", enrolment, as: phone.app).status == 200)
      let request: JSONValue = ["username": "testuser", "phoneNumber": "+1234567890"]
      #expect(try await ask(backend, "POST", "/auth/request-otp", request, as: phone.app).status == 200)
      #expect(try await backend.stop() == .code(0))
      let lines = try await backend.process.errors.all()
      #expect(lines.contains { $0.contains("📱 SMS to +1234567890: Your OTP is ") } == isLogged)
    }
  }

  @Test("A-125 --log-sql logs each statement at level debug, without its values")
  func statements() async throws {
    let backend = try await BackendProcess(
      ["--ephemeral", "--listen", "127.0.0.1:0", "--log-sql", "--log-level", "debug"]
        + BackendProcess.trusting(gate))
    defer { backend.process.kill() }
    let phone = TestPhone(username: "unmistakable")
    #expect(try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
    #expect(try await backend.stop() == .code(0))
    let statements = try await backend.process.errors.all().filter { $0.contains(#""message":"statement""#) }
    #expect(statements.contains { $0.contains("INSERT INTO devices") })
    #expect(!statements.contains { $0.contains("unmistakable") || $0.contains(phone.number) })
  }

  @Test("A-225 /metrics has counts and durations of operations by outcome, on its own address")
  func metrics() async throws {
    let backend = try await BackendProcess(
      ["--ephemeral", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"] + BackendProcess.trusting(gate))
    defer { backend.process.kill() }
    let line = try await backend.process.errors.first("the port of the metrics") { $0.contains("metrics listening") }
    let port = try #require(try JSONValue(Data(line.utf8))["port"]?.int)
    let phone = TestPhone()
    #expect(try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app).status == 200)
    #expect(try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: .genuine()).status == 409)
    let text = try await curl("GET", "http://127.0.0.1:\(port)/metrics").text
    #expect(text.contains(#"mfa_operations_total{operation="mfa.enroll",outcome="done"} 1"#), "\(text)")
    #expect(text.contains(#"mfa_operations_total{operation="mfa.enroll",outcome="device_exists"} 1"#))
    #expect(text.contains(#"mfa_operation_duration_seconds_count{operation="mfa.enroll"} 2"#))
    let main = try #require(backend.port)
    #expect(try await curl("GET", "http://127.0.0.1:\(main)/metrics").status == 401)
  }

  @Test("A-227 commands verify and export the history, and verification of a changed entry exits with 1")
  func history() async throws {
    try await Places.withTemporaryFolder { folder in
      let phone = TestPhone()
      var log: LineLog?
      try await withDatabase(in: folder) { backend async throws in
        log = backend.process.errors
        _ = try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app)
        _ = try await ask(backend, "POST", "/mfa/downgrade", phone.naming, as: phone.app)
      }
      let logged = try await log?.all() ?? []
      #expect(logged.contains { $0.contains(#""message":"history key created""#) })
      let heads = try logged.filter { $0.contains(#""message":"history head""#) }
        .compactMap { try JSONValue(Data($0.utf8))["head"]?.text }
      let newest = try await mfa(["admin", "history", "testuser", "--last", "1"] + Self.database(folder)).output
      #expect(newest.count == 1 && newest.first?.contains(" device.downgraded device=") == true, "\(newest)")
      let older = try await mfa(["admin", "history", "testuser", "--before", "3"] + Self.database(folder)).output
      #expect(older.count == 1 && older.first?.hasPrefix("2 ") == true, "\(older)")
      #expect(try await mfa(["admin", "history", "testuser", "--last", "0"] + Self.database(folder)).exit == .code(64))
      let database = Self.database(folder)
      #expect(try await mfa(["audit", "verify"] + database.prefix(2)).exit == .code(78))
      let verified = try await mfa(["audit", "verify"] + database)
      #expect(verified.exit == .code(0), "\(verified.errors)")
      let known = try #require(verified.output.first)
      // The first entry is the start of the key.
      #expect(known.hasPrefix("3:"))
      #expect(try await mfa(["audit", "verify", "--known", known] + database).exit == .code(0))
      for text in [String(known.dropLast(2)), "-" + known, known.replacing(":", with: "::")] {
        let run = try await mfa(["audit", "verify", "--known=" + text] + database)
        #expect(run.exit == .code(64), "\(run.errors)")
      }
      for head in heads { #expect(try await mfa(["audit", "verify", "--head", head] + database).exit == .code(0)) }
      #expect(heads.count == 2 && heads.last?.hasPrefix(known + ":") == true, "\(heads)")
      let foreign = try #require(heads.last).dropLast() + (heads.last?.last == "0" ? "1" : "0")
      let unsigned = try await mfa(["audit", "verify", "--head", String(foreign)] + database)
      #expect(unsigned.exit == .code(1) && unsigned.errors.first?.contains("signed the head") == true)
      #expect(try await mfa(["audit", "verify", "--head", "3:00"] + database).exit == .code(64))
      let lines = try await mfa(["audit", "export"] + database.prefix(2)).output
      #expect(lines.count == 3)
      #expect(try JSONValue(Data(lines[2].utf8))["event"] == "device.downgraded")
      let changed = try await ChildProcess.run(
        Places.tool("python3"),
        [
          "-c",
          "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()",
          folder + "/mfa.db", "DELETE FROM audit WHERE sequence = 3",
        ])
      #expect(changed.exit == .code(0), "\(changed.errors)")
      #expect(try await mfa(["audit", "verify"] + database).exit == .code(0))
      let cut = try await mfa(["audit", "verify", "--head", try #require(heads.last)] + database)
      #expect(cut.exit == .code(1) && cut.errors == ["error: the history ends with entry 2, but had 3 entries"])
      _ = try await ChildProcess.run(
        Places.tool("python3"),
        [
          "-c",
          "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()",
          folder + "/mfa.db", "UPDATE audit SET actor = 'x'",
        ])
      let broken = try await mfa(["audit", "verify"] + database)
      #expect(broken.exit == .code(1))
      #expect(broken.errors == ["error: entry 1 was changed"])
    }
  }

  @Test("X-054 after keys reseal and keys rotate, numbers are readable without the old key-encryption key")
  func resealed() async throws {
    try await Places.withTemporaryFolder { folder in
      let phone = TestPhone()
      try await withDatabase(in: folder) { backend async throws in
        _ = try await ask(backend, "POST", "/mfa/enroll", phone.enrolment(), as: phone.app)
      }
      let resealed = try await mfa(["keys", "reseal"] + Self.database(folder))
      #expect(resealed.output == ["1 values resealed"], "\(resealed.errors)")
      let fresh = try await mfa(["keys", "make"]).output.joined()
      let old = try String(contentsOfFile: folder + "/keys.json", encoding: .utf8)
      try Self.write(fresh.dropLast() + "," + old.dropFirst(), toPrivate: folder + "/keys.json")
      #expect(try await mfa(["keys", "rotate"] + Self.database(folder)).output == ["7 data keys resealed"])
      #expect(try await mfa(["keys", "rotate"] + Self.database(folder)).output == ["0 data keys resealed"])
      try Self.write(fresh, toPrivate: folder + "/keys.json")
      try await withDatabase(in: folder) { backend async throws in
        let status = try await ask(backend, "GET", "/device/\(phone.deviceID)/status", as: phone.app)
        #expect(status["phoneNumber"] == "+********90")
      }
    }
  }
}
