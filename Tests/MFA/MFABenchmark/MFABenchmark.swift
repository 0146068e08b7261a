import ArgumentParser
import ByteCoding
import Foundation
import PostgresServers
import TestSupport

/// Measures sign-ins and reads. A sign-in has two requests, the challenge and its signature, each with its own
/// identity.
@main
struct MFABenchmark: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mfa-bench",
    abstract: "Measures challenge-response sign-ins a second, with SQLite on a disk or with PostgreSQL.",
    discussion: """
      Starts mfa-backend on one core, and signs in from another. Prints sign-ins a second of time, and a second of the \
      backend's own CPU time: the latter is what one core does when nothing else wants it. Examples:

        swift build -c release --product mfa-backend && swift build -c release --product mfa-bench
        .build/release/mfa-bench --folder .build
        .build/release/mfa-bench --store postgres --backends 2
      """)

  enum StoreKind: String, ExpressibleByArgument, CaseIterable { case sqlite, postgres }

  @Option(help: "The database: sqlite or postgres. The latter starts a server of its own.")
  var store = StoreKind.sqlite

  @Option(help: "Backends on one PostgreSQL database.")
  var backends = 1

  @Flag(help: "Measure requests that only read instead of sign-ins.")
  var reads = false

  @Option(help: "Devices that sign in or read at the same time.")
  var clients = 200

  @Option(help: "How long to measure, in seconds.")
  var seconds = 10

  @Option(help: "A folder on a disk, for the database.")
  var folder = "."

  @Option(help: "The backend's program. The default is the one next to this program.")
  var program: String?

  func validate() throws {
    guard backends >= 1, clients >= 1, seconds >= 1 else {
      throw ValidationError("--backends, --clients and --seconds must be at least 1")
    }
    guard store == .postgres || backends == 1 else {
      throw ValidationError("a SQLite file has one backend: use --store postgres with --backends")
    }
  }

  func run() async throws {
    let place = "\(folder)/mfa-bench-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: place) }
    let gate = SigningGate()
    try gate.jwks.write(toFile: place + "/gate.jwks", atomically: true, encoding: .utf8)
    try #"[{"name":"1","key":"\#(Base64.encode(Array(repeating: 7, count: 32)))"}]"#.write(
      toFile: place + "/keys.json", atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: place + "/keys.json")
    let server = store == .postgres ? try await PostgresServer.start() : nil
    let database = server.map { PostgresServer.url(of: [$0]) } ?? "sqlite://\(absolute(place))/mfa.db"
    var processes: [ChildProcess] = []
    defer { for process in processes { process.kill() } }
    var ports: [Int] = []
    for _ in 0..<backends {
      let backend = try start(place, database)
      processes.append(backend)
      ports.append(try await Self.port(of: backend))
    }
    let crowd = try await Crowd(count: clients, gate: gate, ports: ports)
    let work: Crowd.Work = reads ? .reads : .signIns
    _ = try await crowd.run(work, for: .seconds(1))
    let before = try processes.map(Self.cpuSeconds).reduce(0, +)
    let start = ContinuousClock.now
    let count = try await crowd.run(work, for: .seconds(seconds))
    let wall = (ContinuousClock.now - start) / .seconds(1)
    let cpu = try processes.map(Self.cpuSeconds).reduce(0, +) - before
    print(
      "\(count) \(work.rawValue) in \(Self.text(wall)) s: \(Self.text(Double(count) / wall)) a second;"
        + " \(Self.text(Double(count) / cpu)) a second of the backend's CPU time (\(Self.text(cpu)) s)")
    try await crowd.close()
    for backend in processes {
      backend.send(SIGTERM)
      _ = try await backend.exit(within: .seconds(20))
    }
    withExtendedLifetime(server) {}
  }

  private func start(_ place: String, _ database: String) throws -> ChildProcess {
    try ChildProcess(
      Places.tool("taskset"),
      [
        "-c", "0", try program ?? Places.product("mfa-backend"), "run", "--database", database,
        "--keys", place + "/keys.json", "--listen", "127.0.0.1:0", "--gate-jwks", place + "/gate.jwks",
        "--gate-issuer", "bench", "--audience", "mfa", "--log-level", "error",
        // The devices have one address, and each signs in more often than a person.
        "--ip-code-requests", "off", "--ip-messages-per-hour", "off", "--key-requests", "1000000/1s",
        "--key-code-requests", "1000000/1s", "--key-messages-per-hour", "1000000", "--messages-per-hour", "1000000",
      ], environment: ["MFA_BACKEND_LOG__LEVEL": nil])
  }

  private func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  private static func text(_ value: Double) -> String { String(format: "%.1f", value) }

  /// The port on which the backend listens, from the system. At this level, the log does not contain the port.
  private static func port(of process: ChildProcess) async throws -> Int {
    for _ in 0..<200 {
      let run = try await ChildProcess.run(Places.tool("ss"), ["-Hltnp"])
      for line in run.output where line.contains("pid=\(process.id),") {
        if let port = line.split(separator: " ").dropFirst(3).first?.split(separator: ":").last.flatMap({ Int($0) }) {
          return port
        }
      }
      guard !process.hasEnded else { break }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw NotListening(lines: process.errors.lines)
  }

  struct NotListening: Error { let lines: [String] }

  /// User and system time of a process (proc(5), fields 14 and 15, in hundredths of a second).
  private static func cpuSeconds(of process: ChildProcess) throws -> Double {
    let text = try String(contentsOfFile: "/proc/\(process.id)/stat", encoding: .utf8)
    // The name, in parentheses, can contain spaces. The third field follows it.
    let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 13, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
    return (user + system) / 100
  }
}
