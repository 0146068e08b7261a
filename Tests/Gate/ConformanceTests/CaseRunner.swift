import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport

/// Runs the program with the test cases.
enum CaseRunner {
  static let isWanted = ProcessInfo.processInfo.environment["SALLYPORT_TEST_CONFORMANCE"] != nil

  /// All cases except the many long ones: sizes, speed and compression.
  static let quickCases = ["*", "-9.*", "-12.*", "-13.*"]
  /// All cases except the longest ones with compression, which test nothing more about a relay.
  static let cases = ["*", "-12.*", "-13.*"]

  private static let program = ProjectFile.path("Tests/Gate/Programs/conformance.py")

  static func start(_ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(
      Places.tool("python3"), [program] + arguments,
      environment: ["PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"])
  }

  static func port(of process: ChildProcess) async throws -> Int {
    struct Start: Decodable { let port: Int }
    let line = try await process.output.first("the port") { $0.contains("port") }
    return try JSONDecoder().decode(Start.self, from: Data(line.utf8)).port
  }

  static func score(_ arguments: [String]) async throws -> Score {
    let process = try start(arguments)
    defer { process.kill() }
    guard try await process.exit(within: .seconds(600)) == .code(0) else {
      throw Unexpected(process.errors.lines.suffix(5).joined(separator: "\n"))
    }
    return try score(of: await process.output.all())
  }

  static func score(of lines: [String]) throws -> Score {
    struct Named: Decodable { let `case`: String }
    var score: Score = [:]
    for line in lines where line.contains("verdict") {
      let data = Data(line.utf8)
      score[try JSONDecoder().decode(Named.self, from: data).case] = try JSONDecoder().decode(Verdict.self, from: data)
    }
    return score
  }

  /// Returns a plan for a gate with enforcement off, in front of the server at `port`.
  static func openPlan(before port: Int) -> GatePlan {
    var plan = GatePlan()
    plan.isEnforcing = false
    plan.routes = [("/", "ws://127.0.0.1:\(port)")]
    return plan
  }
}

/// Debian's HAProxy, which adds TLS to plain connections, for clients that do not know the test's authority.
struct TLSWrap {
  let process: ChildProcess
  let port: UInt16

  init(to gate: GateProcess) async throws {
    let port = try Places.freePort()
    let authority = gate.folder.tlsAuthorityPath
    let configuration = """
      defaults
        mode tcp
        timeout connect 5s
        timeout client 60s
        timeout server 60s
        timeout client-fin 10s
        timeout server-fin 10s
      frontend front
        bind 127.0.0.1:\(port)
        default_backend gate
      backend gate
        server gate 127.0.0.1:\(gate.port) ssl verify required ca-file \(authority) verifyhost localhost

      """
    let file = gate.folder.path + "/haproxy.cfg"
    try configuration.write(toFile: file, atomically: true, encoding: .utf8)
    process = try ChildProcess("/usr/sbin/haproxy", ["-db", "-f", file])
    self.port = port
    // HAProxy does not report that it listens, so the test tries to connect until it does.
    while !process.hasEnded, !Self.listens(at: port) { try await Task.sleep(for: .milliseconds(20)) }
  }

  private static func listens(at port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}
