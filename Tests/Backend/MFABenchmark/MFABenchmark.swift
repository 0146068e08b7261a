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
        .build/release/mfa-bench --store postgres --backends 2 --clients 12 --stops

      With --costs, the backend runs under callgrind instead, one core at a time. A line for each kind of request has \
      its operation, a tab and its input; before and after these requests, callgrind writes a profile to PATH.NUMBER. \
      `scripts/bench --check` compares them.
      """)

  enum StoreKind: String, ExpressibleByArgument, CaseIterable { case sqlite, postgres }

  @Option(help: "The database: sqlite or postgres. The latter starts a server of its own.")
  var store = StoreKind.sqlite

  @Option(help: "Backends on one PostgreSQL database.")
  var backends = 1

  @Flag(help: "Measure requests that only read instead of sign-ins.")
  var reads = false

  @Flag(help: "Stop one of two backends for 700 ms again and again, and measure sign-ins at the other one.")
  var stops = false

  @Option(help: "Write profiles of ordinary and of expensive requests to this path, and measure nothing else.")
  var costs: String?

  @Option(help: "With --costs: a library that is loaded into the backend. scripts/benchmark/sigsuspend.c says why.")
  var preload: String?

  @Option(help: "With --costs: the number of requests of each kind.")
  var count = 5

  @Option(help: "Devices that sign in or read at the same time.")
  var clients = 200

  @Option(help: "How long to measure, in seconds.")
  var seconds = 10

  @Option(help: "A folder on a disk, for the database.")
  var folder = "."

  @Option(help: "The backend's program. The default is the one next to this program.")
  var program: String?

  func validate() throws {
    guard backends >= 1, clients >= 1, seconds >= 1, count >= 1 else {
      throw ValidationError("--backends, --clients, --count and --seconds must be at least 1")
    }
    guard store == .postgres || backends == 1 else {
      throw ValidationError("a SQLite file has one backend: use --store postgres with --backends")
    }
    guard !stops || backends == 2 && !reads else {
      throw ValidationError("--stops measures sign-ins: use it with --backends 2, and without --reads")
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
      let backend = try start(place, database, profile: costs.map(absolute))
      processes.append(backend)
      ports.append(try await Self.port(of: backend))
    }
    if costs != nil {
      try await Costs(of: processes[0], at: ports[0], gate: gate).measure(count: count)
    } else if stops {
      try await measureStops(of: processes[0], gate, ports)
    } else {
      try await measure(processes, gate, ports)
    }
    for backend in processes {
      backend.send(SIGTERM)
      _ = try await backend.exit(within: .seconds(20))
    }
    withExtendedLifetime(server) {}
  }

  /// Prints the rate of the work of all backends.
  private func measure(_ processes: [ChildProcess], _ gate: SigningGate, _ ports: [Int]) async throws {
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
  }

  /// Prints the time of a sign-in at one backend while the other one is stopped at any point of its transactions, for
  /// longer than the database server waits for it.
  private func measureStops(of stopped: ChildProcess, _ gate: SigningGate, _ ports: [Int]) async throws {
    let crowd = try await Crowd(count: max(1, clients / 2), gate: gate, ports: [ports[1]])
    let writers = try await Crowd(count: max(1, clients / 2), gate: gate, ports: [ports[0]])
    _ = await crowd.signInTimes(for: .seconds(1))
    let time = Duration.seconds(seconds)
    async let written = writers.signInTimes(for: time)
    async let stops: Void = {
      let end = ContinuousClock.now + time
      while ContinuousClock.now < end {
        stopped.send(SIGSTOP)
        try? await Task.sleep(for: .milliseconds(700))
        stopped.send(SIGCONT)
        try? await Task.sleep(for: .milliseconds(Int.random(in: 50...150)))
      }
    }()
    let times = await crowd.signInTimes(for: time)
    _ = await (written, stops)
    guard !times.isEmpty else { throw ValidationError("no sign-in succeeded") }
    func milliseconds(_ share: Int) -> String { Self.text(times[(times.count - 1) * share / 100] / .milliseconds(1)) }
    print(
      "\(times.count) sign-ins in \(seconds) s while another backend was stopped: half within \(milliseconds(50)) ms, "
        + "99 of 100 within \(milliseconds(99)) ms")
    try await crowd.close()
    try await writers.close()
  }

  /// - Parameter profile: Where callgrind writes profiles of the backend; `nil` without it.
  private func start(_ place: String, _ database: String, profile: String?) throws -> ChildProcess {
    let callgrind = profile.map { ["valgrind", "--tool=callgrind", "--callgrind-out-file=\($0)"] } ?? []
    return try ChildProcess(
      Places.tool("taskset"),
      ["-c", "0"] + callgrind + [
        try program ?? Places.product("mfa-backend"), "run", "--database", database,
        "--keys", place + "/keys.json", "--listen", "127.0.0.1:0", "--gate-jwks", place + "/gate.jwks",
        "--gate-issuer", "bench", "--audience", "mfa", "--log-level", "error",
        // The devices have one address, and each signs in more often than a person.
        "--ip-code-requests", "off", "--ip-messages-per-hour", "off", "--key-requests", "1000000/1s",
        "--key-code-requests", "1000000/1s", "--key-messages-per-hour", "1000000", "--messages-per-hour", "1000000",
      ], environment: ["MFA_BACKEND_LOG__LEVEL": nil, "LD_PRELOAD": preload])
  }

  private func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  private static func text(_ value: Double) -> String { String(format: "%.1f", value) }

  /// The port on which the backend listens, from the system. At this level, the log does not contain the port.
  private static func port(of process: ChildProcess) async throws -> Int {
    // Under callgrind, the start takes half a minute.
    for _ in 0..<2400 {
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
