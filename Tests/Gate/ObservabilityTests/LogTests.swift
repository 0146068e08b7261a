import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The log of a running gate", .serialized, .timeLimit(.minutes(5)))
struct LogTests {
  private static func serving(_ body: (GateProcess, _ upstream: String) async throws -> Void) async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      try await GateProcess.serving(plan) { try await body($0, upstream) }
    }
  }

  private static func fields(_ line: String) throws -> [String: Any] {
    try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
  }

  @Test("The open and the close of a session are logged with key, route, cause, byte counts and duration")
  func session() async throws {
    try await Self.serving { gate, upstream in
      let (visitor, phone) = (try Visitor(to: gate), try Phone(of: gate.authority))
      try await visitor.register(phone)
      let socket = try await visitor.open(as: phone, counter: 1)
      _ = try await socket.exchange(.text("hello"))
      await socket.close()
      let closing = try await gate.process.errors.first("the close") { $0.contains(#""message":"session closed""#) }
      let lines = gate.process.errors.lines.filter { $0.contains(#""message":"session "#) }
      #expect(lines.count == 2)
      for line in [try #require(lines.first), closing] {
        let fields = try Self.fields(line)
        #expect(fields["request_id"] as? String == socket.response.headers.first("X-Request-Id"))
        #expect((fields["key"] as? String)?.count == 16)
        #expect(fields["app"] as? String == "\(GatePlan.teamID).\(GatePlan.bundleID)")
        #expect(fields["route"] as? String == "/" && fields["upstream"] as? String == upstream)
      }
      let fields = try Self.fields(closing)
      #expect(fields["end"] as? String == "closed_by_client" && fields["close_code"] as? Int == 1000)
      // The text and the Close frame of each side: headers, and masking keys from the client.
      #expect(fields["bytes_from_client"] as? Int == 11 + 8 && fields["bytes_from_upstream"] as? Int == 7 + 4)
      #expect(fields["duration_ms"] is Int)
    }
  }

  /// Starts a second gate with the settings of `gate` and the given ones, and returns its first log line with `mark`.
  private static func firstLine(with mark: String, of gate: GateProcess, _ settings: [String]) async throws -> String {
    let process = try ChildProcess(
      Places.product("sallyport"),
      ["run", "-c", gate.folder.path + "/gate.yaml"] + settings.flatMap { ["--set", $0] })
    defer { process.kill() }
    return try await process.errors.first(mark) { $0.contains(mark) }
  }

  @Test("The log is text if configured, without color if there is no terminal")
  func text() async throws {
    try await Self.serving { gate, _ in
      let line = try await Self.firstLine(with: "listening", of: gate, ["log.format=text"])
      #expect(
        line.wholeMatch(of: /\d\d:\d\d:\d\d\.\d{3}Z INFO     listening address=127\.0\.0\.1:\d+ apps=.*/) != nil,
        "\(line)")
    }
  }

  @Test(
    "The log is text on a terminal, with colors unless NO_COLOR is set, and JSON otherwise",
    arguments: [(noColor: "", marks: ["INFO", "\u{1B}[32m"]), (noColor: "1", marks: ["INFO     listening"])])
  func terminal(noColor: String, marks: [String]) async throws {
    try await Self.serving { gate, _ in
      // util-linux's script gives its command a terminal. The gate survives the SIGHUP at the end of its terminal, so
      // timeout stops it.
      let command = "timeout --foreground 20 \(try Places.product("sallyport")) run -c \(gate.folder.path)/gate.yaml"
      let process = try ChildProcess(
        Places.tool("script"), ["-qefc", command, "/dev/null"],
        environment: ["NO_COLOR": noColor, "TERM": "xterm"])
      defer { process.kill() }
      let line = try await process.output.first("the port") { $0.contains("listening") }
      for mark in marks { #expect(line.contains(mark), "\(line.debugDescription)") }
      #expect(line.contains("\u{1B}") == noColor.isEmpty)
      #expect(!line.contains("{"))
    }
  }

  @Test("No line has a number as a string: not of a start, a session, a reload, a revocation or a stop")
  func numbers() async throws {
    try await ObservabilityBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      #expect(try await bench.ask("POST", "/v1/keys/\(hash)/revoke").status == 200)
      _ = try await bench.gate.process.errors.first("the close") { $0.contains(#""message":"session closed""#) }
      withExtendedLifetime(socket) {}
      #expect(try await bench.ask("POST", "/v1/reload").status == 200)
      bench.gate.process.send(SIGTERM)
      #expect(try await bench.gate.process.exit() == .code(0))
      let lines = try await bench.gate.process.errors.all().filter { $0.hasPrefix("{") }
      #expect(lines.count >= 8)
      for line in lines {
        for (name, value) in try Self.fields(line) {
          guard let text = value as? String, !text.isEmpty else { continue }
          #expect(!text.allSatisfy { $0.isNumber }, "\(name) in \(line)")
        }
      }
      #expect(lines.contains { $0.contains(#""sessions":1"#) } && lines.last?.contains(#""cut_off":0"#) == true)
    }
  }

  @Test("The log has no line below the configured level")
  func level() async throws {
    try await Self.serving { gate, _ in
      // Without a configured route, the start logs a warning. SQLite opens no other file as a database.
      let path = gate.folder.path + "/other.db"
      let isMade = FileManager.default.createFile(
        atPath: path, contents: Data(repeating: 0x78, count: 4096), attributes: [.posixPermissions: 0o600])
      try #require(isMade)
      let line = try await Self.firstLine(
        with: "\"level\"", of: gate,
        [
          "log.level=error", "metrics.listen=127.0.0.1:0", "app_attest.enforcement=off",
          "store.url=sqlite://\(path)",
        ])
      #expect(line.contains(#""level":"error""#) && line.contains("store not opened"))
    }
  }
}
