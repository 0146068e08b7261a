import ByteCoding
import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// A collector that parses with OpenTelemetry's own definitions.
private struct Collector {
  static let packages = PythonPackages(
    name: "telemetry-python", packages: ["opentelemetry-proto==1.27.0"],
    modules: "import opentelemetry.proto.collector.trace.v1.trace_service_pb2")

  struct Request: Decodable {
    struct Item: Decodable {
      let name: String
      var trace: String?
      var id: String?
      var parent: String?
      var kind: Kind?
      var start: UInt64?
      var end: UInt64?
      var status: Int?
      var attributes: [String: JSONScalar]?
      var resource: [String: JSONScalar]?
    }
    let path: String
    let authorization: String?
    let items: [Item]?
    let error: String?
  }

  /// A number for spans, a word for metrics.
  enum Kind: Decodable, Equatable {
    case number(Int), word(String)
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Int.self) {
        self = .number(number)
      } else {
        self = .word(try container.decode(String.self))
      }
    }
  }

  let process: ChildProcess
  let port: UInt16

  /// - Parameter rejected: The number of spans that it claims to reject of each request.
  init(_ arguments: [String] = [], rejected: Int? = nil) async throws {
    process = try ChildProcess(
      Self.packages.python, [ProjectFile.path("Tests/Gate/Programs/collector.py")] + arguments,
      environment: ["COLLECTOR_REJECTS": rejected.map { "\($0)" }])
    let line = try await process.output.first("the port") { $0.contains("port") }
    port = try #require(JSONDecoder().decode([String: UInt16].self, from: Data(line.utf8))["port"])
  }

  /// Returns all requests so far; waits for the first with `path`.
  func requests(_ path: String) async throws -> [Request] {
    _ = try await process.output.first("a request for \(path)", within: .seconds(30)) { $0.contains("\"\(path)\"") }
    return try process.output.lines.filter { $0.contains("\"path\"") }
      .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
  }
}

@Suite(
  "Telemetry of a running gate", .serialized, .timeLimit(.minutes(5)),
  .enabled("opentelemetry-proto cannot be installed: it needs python3-venv and PyPI") {
    await Collector.packages.arePresent()
  })
struct TelemetryExportTests {
  private func serving(
    _ telemetry: String, forwardsAll: Bool = false,
    _ body: (GateProcess, Visitor, _ upstream: ChildProcess) async throws -> Void
  ) async throws {
    let (backend, port) = try await server("websocket")
    defer { backend.kill() }
    let (silent, silentPort) = try await server("silent")
    defer { silent.kill() }
    var plan = GatePlan()
    plan.forwardsAll = forwardsAll
    plan.routes = [
      ("/", "ws://127.0.0.1:\(port)"), ("/down", "ws://127.0.0.1:1"), ("/silent", "ws://127.0.0.1:\(silentPort)"),
    ]
    plan.further = "metrics: { listen: \"127.0.0.1:0\" }\n" + telemetry
    try await GateProcess.serving(plan) { gate in try await body(gate, try Visitor(to: gate), backend) }
  }

  /// Starts an independent server of the kind that `backend.py` names.
  private func server(_ kind: String) async throws -> (process: ChildProcess, port: UInt16) {
    let process = try ChildProcess("/usr/bin/python3", [ProjectFile.path("Tests/Gate/Programs/backend.py"), kind])
    let place = try await process.output.first("the place") { $0.contains("place") }
    return (process, try #require(JSONDecoder().decode([String: UInt16].self, from: Data(place.utf8))["place"]))
  }

  /// Returns the traceparent that the upstream got.
  private func traceparent(_ backend: ChildProcess) async throws -> String {
    let line = try await backend.output.first("a request") { $0.contains("traceparent") }
    let match = try #require(line.firstMatch(of: /"traceparent", "([^"]+)"/))
    return String(match.output.1)
  }

  @Test("A session's spans reach the collector, continue the client's trace, and are the parents of the upstream's")
  func session() async throws {
    let collector = try await Collector()
    defer { collector.process.kill() }
    let telemetry = "telemetry: { otlp: \"http://127.0.0.1:\(collector.port)/base\", sample: 1 }"
    try await serving(telemetry) { gate, visitor, backend in
      let phone = try Phone(of: gate.authority)
      try await visitor.register(phone)
      var credentials = try phone.credentials(over: await visitor.challenge(), counter: 1)
      let trace = "0af7651916cd43dd8448eb211c80319c"
      credentials.append("traceparent", "00-\(trace)-b7ad6b7169203331-01")
      let socket = try await visitor.open("/?secret=1", credentials)
      let refused = try phone.credentials(over: await visitor.challenge(), counter: 2)
      #expect(try await visitor.refusal(of: refused, at: "/down") == "upstream_unavailable")
      await socket.close()
      gate.process.send(SIGTERM)
      #expect(try await gate.process.exit() == .code(0))

      let requests = try await collector.requests("/base/v1/metrics")
      #expect(requests.allSatisfy { $0.error == nil }, "\(requests.compactMap(\.error))")
      let items = requests.filter { $0.path == "/base/v1/traces" }.flatMap { $0.items ?? [] }
      #expect(items.allSatisfy { $0.resource?["service.name"] == .text("sallyport") && $0.start ?? 1 <= $0.end ?? 0 })
      let spans = items.filter { $0.trace == trace }
      let root = try #require(spans.first { $0.kind == .number(2) })
      #expect(root.name == "GET /" && root.parent == "b7ad6b7169203331" && root.status == 0)
      #expect(root.attributes?["http.response.status_code"] == .number(101))
      let decision = try #require(spans.first { $0.name == "decision" })
      let upstream = try #require(spans.first { $0.name == "upstream" })
      #expect([decision, upstream].allSatisfy { $0.parent == root.id })
      #expect(spans.contains { $0.name == "TLS handshake" && $0.parent == root.id })
      for step in ["assertion", "admit"] { #expect(spans.contains { $0.name == step && $0.parent == decision.id }) }
      #expect(try await traceparent(backend) == "00-\(trace)-\(upstream.id ?? "")-01")

      let failed = try #require(items.first { $0.name == "GET /down" })
      #expect(failed.status == 2 && failed.attributes?["error.type"] == .text("upstream_unavailable"))
      #expect(items.contains { $0.name == "upstream" && $0.attributes?["error.type"] == .text("unreachable") })
      let text = collector.process.output.lines.joined()
      for secret in ["secret", phone.keyID] { #expect(!text.contains(secret)) }

      let metrics = requests.filter { $0.path == "/base/v1/metrics" }.flatMap { $0.items ?? [] }
      let names = Set(metrics.map(\.name))
      #expect(names.isSuperset(of: ["sallyport_admissions_total", "sallyport_sessions_active", "process_open_fds"]))
      #expect(metrics.first { $0.name == "sallyport_store_duration_seconds" }?.kind == .word("histogram"))
    }
  }

  @Test("With a share of 0 no span is exported, and the upstream is told so")
  func unsampled() async throws {
    let collector = try await Collector()
    defer { collector.process.kill() }
    let telemetry = "telemetry: { otlp: \"http://127.0.0.1:\(collector.port)\", sample: 0 }"
    try await serving(telemetry) { gate, visitor, backend in
      let phone = try Phone(of: gate.authority)
      try await visitor.register(phone)
      await (try await visitor.open(as: phone, counter: 1)).close()
      #expect(try await traceparent(backend).hasSuffix("-00"))
      gate.process.send(SIGTERM)
      #expect(try await gate.process.exit() == .code(0))
      let requests = try await collector.requests("/v1/metrics")
      #expect(!requests.contains { $0.path == "/v1/traces" })
    }
  }

  @Test("A client that resets its connection before its upstream answers has a span that says so")
  func leaving() async throws {
    let collector = try await Collector()
    defer { collector.process.kill() }
    let telemetry = "telemetry: { otlp: \"http://127.0.0.1:\(collector.port)\", sample: 1 }"
    try await serving(telemetry, forwardsAll: true) { gate, visitor, _ in
      let phone = try Phone(of: gate.authority)
      try await visitor.register(phone)
      var request = "GET /silent HTTP/1.1\r\nHost: localhost:\(gate.port)\r\n"
      for field in try phone.credentials(over: await visitor.challenge(), counter: 1).fields {
        request += "\(field.name): \(field.value)\r\n"
      }
      let (exit, _, errors) = try await ChildProcess.run(
        "/usr/bin/python3",
        [
          ProjectFile.path("Tests/Gate/Programs/leaving_client.py"), String(gate.port),
          gate.folder.tlsAuthorityPath,
        ], input: Array((request + "\r\n").utf8))
      try #require(exit == .code(0), "\(errors)")
      let line = try await collector.process.output.first("the span", within: .seconds(30)) {
        $0.contains("GET /silent")
      }
      let items = try #require(JSONDecoder().decode(Collector.Request.self, from: Data(line.utf8)).items)
      let root = try #require(items.first { $0.name == "GET /silent" })
      #expect(root.attributes?["error.type"] == .text("client_left"))
      #expect(root.attributes?["http.response.status_code"] == nil)
      let upstream = try #require(items.first { $0.name == "upstream" && $0.parent == root.id })
      #expect(upstream.attributes?["error.type"] == .text("client_left"))
      #expect(try #require(upstream.end) - #require(upstream.start) > 300_000_000)
    }
  }

  @Test("Spans that the collector rejects are counted as lost, and the first are logged")
  func rejected() async throws {
    let collector = try await Collector(rejected: 1)
    defer { collector.process.kill() }
    let telemetry = "telemetry: { otlp: \"http://127.0.0.1:\(collector.port)\", sample: 1 }"
    try await serving(telemetry) { gate, visitor, _ in
      _ = try await visitor.challenge()
      let results = "sallyport_telemetry_spans_total"
      let after = try await MetricsPort(of: gate).scrape { $0.value(results, ["result": "lost"]) ?? 0 > 0 }
      #expect(after.value(results, ["result": "lost"]) == 1)
      #expect(after.value(results, ["result": "exported"]) ?? 0 >= 2)
      let line = try await gate.process.errors.first("the rejection") { $0.contains("telemetry rejected in part") }
      #expect(line.contains(#""reason":"too old","rejected":1"#), "\(line)")
    }
  }

  @Test(
    "Without a collector that answers, the gate serves, reports it once, counts what is lost, and exits in time",
    arguments: ["tcp", "silent"])
  func noCollector(_ kind: String) async throws {
    let (process, port) = try await server(kind)
    defer { process.kill() }
    try await serving("telemetry: { otlp: \"http://127.0.0.1:\(port)\", sample: 1 }") { gate, visitor, _ in
      _ = try await visitor.challenge()
      let metrics = try await MetricsPort(of: gate)
      let results = "sallyport_telemetry_spans_total"
      let before = try await metrics.scrape()
      #expect(before.value(results, ["result": "lost"]) == 0 && before.value(results, ["result": "exported"]) == 0)
      #expect(before.value("sallyport_telemetry_dropped_spans_total") == 0)
      let line = try await gate.process.errors.first("the failure", within: .seconds(30)) {
        $0.contains(#""message":"telemetry export failed""#)
      }
      #expect(line.contains("127.0.0.1:\(port)"), "\(line)")
      #expect(try await visitor.challenge().isEmpty == false)
      let after = try await metrics.scrape { $0.value(results, ["result": "lost"]) ?? 0 > 0 }
      // The handshake, the decision, the store's part of it, and the request itself.
      #expect(after.value(results, ["result": "lost"]) ?? 0 >= 3)
      #expect(after.value(results, ["result": "exported"]) == 0)
      gate.process.send(SIGTERM)
      #expect(try await gate.process.exit() == .code(0))
      let failures = gate.process.errors.lines.filter { $0.contains("telemetry export failed") }
      #expect(failures.count == 1)
    }
  }

  @Test("A collector with TLS is verified, gets the header fields of the file, and another authority is refused")
  func secure() async throws {
    try await Places.withTemporaryFolder { folder in
      let authority = AuthorityFolder(path: folder + "/collector")
      _ = try authority.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
      let collector = try await Collector([authority.serverCertificatePath, authority.serverKeyPath])
      defer { collector.process.kill() }
      let file = folder + "/headers"
      try Data("# For the collector\nAuthorization: Bearer abc\n".utf8).write(to: URL(fileURLWithPath: file))
      chmod(file, 0o600)
      let base = "otlp: \"https://localhost:\(collector.port)\", sample: 1, headers_file: \"\(file)\""
      try await serving("telemetry: { \(base), ca_file: \"\(authority.tlsAuthorityPath)\" }") { gate, visitor, _ in
        _ = try await visitor.challenge()
        let requests = try await collector.requests("/v1/traces")
        #expect(requests.first?.authorization == "Bearer abc" && requests.first?.error == nil)
        withExtendedLifetime(gate) {}
      }
      let count = collector.process.output.lines.count
      try await serving("telemetry: { \(base), ca_file: \"DIR/tls-ca.pem\" }") { gate, visitor, _ in
        _ = try await visitor.challenge()
        let line = try await gate.process.errors.first("the failure", within: .seconds(30)) {
          $0.contains(#""message":"telemetry export failed""#)
        }
        #expect(line.contains("certificate"), "\(line)")
        // The gate goes on.
        #expect(try await visitor.challenge().isEmpty == false)
      }
      #expect(collector.process.output.lines.count == count)
    }
  }
}
