import Foundation
import SimulatedDevice
import TestSupport
import Testing
import TransportEngine

/// Sends the table of `HeadBatteryTests` to other servers. Lenient servers are not faulty: the result shows which
/// requests only the gate keeps from its backend.
@Suite(
  "The table of bad requests", .serialized, .timeLimit(.minutes(10)),
  .enabled(if: ProcessInfo.processInfo.environment["SALLYPORT_TEST_COMPARE"] != nil, "scripts/test --compare"))
struct ComparisonTests {
  @Test("Debian's nginx and HAProxy are compared with the gate, and the requests that each forwards are printed")
  func compare() async throws {
    let cases = HeadCase.all.filter(\.kind.isForEverybody)
    var columns: [(name: String, passed: [HeadCase])] = []
    for server in OtherServer.allCases { columns.append((server.rawValue, try await passed(cases, by: server))) }
    columns.append(("sallyport", try await passedByTheGate(cases)))
    print("| kind | cases | " + columns.map(\.name).joined(separator: " | ") + " |")
    for kind in HeadCase.Kind.allCases where kind.isForEverybody {
      let counts = columns.map { column in "\(column.passed.count { $0.kind == kind })" }
      print("| \(kind.rawValue) | \(cases.count { $0.kind == kind }) | " + counts.joined(separator: " | ") + " |")
    }
    print("| all | \(cases.count) | " + columns.map { "\($0.passed.count)" }.joined(separator: " | ") + " |")
    for (name, passed) in columns where !passed.isEmpty {
      print("\(name) forwards: " + passed.map(\.name).joined(separator: "; "))
    }
    #expect(columns.last?.passed.isEmpty == true)
  }

  private func passed(_ cases: [HeadCase], by server: OtherServer) async throws -> [HeadCase] {
    try await Places.withTemporaryFolder { folder in
      try AuthorityFolder(path: folder).save(RunningGate.authority.get())
      let witness = try await Witness()
      defer { witness.process.kill() }
      let (process, port) = try await server.start(in: folder, backend: witness.port)
      defer { process.kill() }
      let client = RawClient(RunningGate(process: process, folder: folder, port: port))
      // A valid request must pass, otherwise the other results have no meaning.
      #expect(try await passes(HeadCase.good, client, witness), "\(server)")
      return try await passed(cases, client, witness)
    }
  }

  private func passedByTheGate(_ cases: [HeadCase]) async throws -> [HeadCase] {
    let witness = try await Witness()
    defer { witness.process.kill() }
    // Enforcement is off, so that only the form of a request can stop it.
    let configuration = GateConfiguration(upstream: witness.url, enforcement: "off")
    return try await RunningGate.serving(configuration) { gate in
      let client = RawClient(gate)
      #expect(try await passes(HeadCase.good, client, witness))
      return try await passed(cases, client, witness)
    }
  }

  private func passed(_ cases: [HeadCase], _ client: RawClient, _ witness: Witness) async throws -> [HeadCase] {
    var passed: [HeadCase] = []
    for head in cases where try await passes(head, client, witness) { passed.append(head) }
    return passed
  }

  /// Returns whether `head` reaches the backend. A connection is enough: a proxy opens none without a request.
  private func passes(_ head: HeadCase, _ client: RawClient, _ witness: Witness) async throws -> Bool {
    let before = try witness.connectionCount
    let process = try client.connect()
    defer { process.kill() }
    process.write(head.bytes(["X-App-Assert-Nonce: x"]))
    // Waits for an answer, the end, or two seconds: some servers wait for more of a head that they consider
    // incomplete.
    _ = try? await process.output.first("an answer", within: .seconds(2)) { _ in true }
    return try witness.connectionCount > before
  }
}

extension HeadCase {
  fileprivate static let good = HeadCase("nothing wrong", 101) { head(["GET / HTTP/1.1"] + handshake + $0) }
}

/// Another server in front of a backend, with TLS and upgrades and otherwise the default configuration.
private enum OtherServer: String, CaseIterable {
  case nginx
  case haproxy = "HAProxy"

  func start(in folder: String, backend: Int) async throws -> (ChildProcess, UInt16) {
    let port = try Places.freePort()
    let process =
      switch self {
      case .nginx: try nginx(in: folder, port, backend)
      case .haproxy: try haproxy(in: folder, port, backend)
      }
    // The servers do not report that they listen, so the test tries to connect until it can.
    while !process.hasEnded, (try? await ClientEngine().connect(host: "127.0.0.1", port: port, tls: nil)) == nil {
      try await Task.sleep(for: .milliseconds(20))
    }
    return (process, port)
  }

  private func nginx(in folder: String, _ port: UInt16, _ backend: Int) throws -> ChildProcess {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder)/\($0);" }
    let configuration = """
      daemon off;
      master_process off;
      pid \(folder)/nginx.pid;
      error_log \(folder)/nginx.log;
      events {}
      http {
      access_log off;
      \(temporary.joined(separator: "\n"))
      map $http_upgrade $connection_upgrade { default upgrade; '' close; }
      server {
        listen 127.0.0.1:\(port) ssl;
        ssl_certificate \(folder)/server.pem;
        ssl_certificate_key \(folder)/server.key;
        location / {
          proxy_pass http://127.0.0.1:\(backend);
          proxy_http_version 1.1;
          proxy_set_header Host $host;
          proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $connection_upgrade;
        }
      }
      }
      """
    try configuration.write(toFile: folder + "/nginx.conf", atomically: true, encoding: .utf8)
    return try ChildProcess("/usr/sbin/nginx", ["-c", folder + "/nginx.conf", "-e", "stderr"], in: folder)
  }

  private func haproxy(in folder: String, _ port: UInt16, _ backend: Int) throws -> ChildProcess {
    let pem = try ["server.pem", "server.key"].map { try String(contentsOfFile: folder + "/" + $0, encoding: .utf8) }
    try pem.joined().write(toFile: folder + "/both.pem", atomically: true, encoding: .utf8)
    let configuration = """
      defaults
        mode http
        timeout connect 5s
        timeout client 60s
        timeout server 60s
      frontend front
        bind 127.0.0.1:\(port) ssl crt \(folder)/both.pem alpn http/1.1
        default_backend backend
      backend backend
        server backend 127.0.0.1:\(backend)

      """
    try configuration.write(toFile: folder + "/haproxy.cfg", atomically: true, encoding: .utf8)
    return try ChildProcess("/usr/sbin/haproxy", ["-db", "-f", folder + "/haproxy.cfg"], in: folder)
  }
}
