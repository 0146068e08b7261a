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

  @Test("The log has no line below the configured level")
  func level() async throws {
    try await Self.serving { gate, _ in
      // Without a configured route, the start logs a warning.
      let line = try await Self.firstLine(
        with: "\"level\"", of: gate,
        [
          "log.level=error", "metrics.listen=127.0.0.1:0", "app_attest.enforcement=off",
          "store.url=sqlite:///nowhere/x.db",
        ])
      #expect(line.contains(#""level":"error""#) && line.contains("store not opened"))
    }
  }
}
