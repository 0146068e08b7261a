import Foundation
import GateProcesses
import MFAFixtures
import SimulatedDevice
import TestSupport
import Testing

/// A running `attest lab` with its page.
struct LabPageServer {
  let process: ChildProcess
  /// The URL with its token.
  let url: String

  init(at household: BackendBehindGate) async throws {
    process = try ChildProcess(
      Places.product("attest"),
      [
        "lab", household.socketURL, "--authority", household.gate.folder.path, "--messages", household.log,
      ], environment: ["XDG_DATA_HOME": household.data, "SALLYPORT_AUTHORITY": nil])
    url = try await process.output.first("the URL of the page") { $0.hasPrefix("http://127.0.0.1:") }
  }

  var origin: String { String(url.prefix { $0 != "#" }.dropLast()) }
  var token: String { String(url.drop { $0 != "#" }.dropFirst()) }
  var port: String { String(origin.split(separator: ":").last ?? "") }
}

@Suite("The page of the device lab", .serialized, .timeLimit(.minutes(10)))
struct LabPageTests {
  /// The last errors of a run, without the frames of the browser's driver.
  private static func reasons(_ errors: [String]) -> ArraySlice<String> {
    errors.filter { !$0.contains("<unknown>") }.suffix(5)
  }

  private func serving(_ body: (LabPageServer) async throws -> Void) async throws {
    try await BackendBehindGate.serving { household in
      let server = try await LabPageServer(at: household)
      defer { server.process.kill() }
      try await body(server)
      server.process.send(SIGTERM)
      #expect(try await server.process.exit(within: .seconds(10)) == .code(0))
    }
  }

  @Test("A-193 B-010 A-113 A-114 A-115 A-116 A-117 A-135 A-153 B-086 the page works by keyboard in Chromium")
  func browser() async throws {
    try await serving { server in
      let environment = ProcessInfo.processInfo.environment
      let run = try await ChildProcess.run(
        "/usr/bin/python3",
        [
          ProjectFile.path("Tests/Backend/Programs/lab_page.py"), server.url, Places.product("authenticator"),
        ] + [environment["SALLYPORT_LAB_SCREENSHOTS"]].compactMap(\.self), within: .seconds(300))
      #expect(run.exit == .code(0), "\(run.output.joined(separator: "\n")) \(Self.reasons(run.errors))")
      #expect(run.output.last == "all is well")
      if environment["SALLYPORT_TEST_LAB"] != nil {
        #expect(run.output.contains("axe-core reports nothing serious"))
      }
    }
  }

  @Test("The page forbids outside resources, and is one document of at most 150 KB")
  func document() async throws {
    try await serving { server in
      let run = try await ChildProcess.run(Places.tool("curl"), ["--silent", "--include", server.origin + "/"])
      let text = run.output.joined(separator: "\n")
      #expect(text.hasPrefix("HTTP/1.1 200") && text.utf8.count <= 150_000)
      let policy = try #require(run.output.first { $0.hasPrefix("Content-Security-Policy: ") })
      #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
      #expect(policy.contains("trusted-types 'none'") && !policy.contains("unsafe"))
      #expect(!text.contains("https://") && !text.contains("src=") && !text.contains("href="))
      #expect(!text.contains(server.token))
    }
  }

  @Test(
    "Requests with another host, method or path, and sockets of other origins, are refused",
    arguments: [
      (["-H", "Host: evil.example:PORT"], "/", 421), (["-H", "Host: 127.0.0.1:1"], "/", 421),
      (["-X", "POST"], "/", 405), ([], "/etc/passwd", 404), ([], "/lab", 426),
      (upgrade + ["-H", "Origin: http://evil.example"], "/lab", 403), (upgrade, "/lab", 403),
      (upgrade + ["-H", "Origin: https://127.0.0.1:PORT"], "/lab", 403),
    ])
  func refused(_ options: [String], _ path: String, _ status: Int) async throws {
    try await serving { server in
      let options = options.map { $0.replacing("PORT", with: server.port) }
      let run = try await ChildProcess.run(
        Places.tool("curl"),
        ["--silent", "--max-time", "5", "--output", "/dev/null", "--write-out", "%{http_code}"] + options
          + [server.origin + path])
      #expect(run.output == ["\(status)"])
    }
  }

  private static let upgrade = [
    "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13",
    "-H", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
  ]

  @Test(
    "Pages without the token, messages that are no events and a second page are refused; 10,000 events fit in 64 MiB")
  func socket() async throws {
    try await serving { server in
      let run = try await ChildProcess.run(
        "/usr/bin/python3",
        [ProjectFile.path("Tests/Backend/Programs/lab_socket.py"), server.url, "\(server.process.id)"])
      #expect(run.exit == .code(0), "\(run.output) \(Self.reasons(run.errors))")
      let resident = try #require(run.output.last.flatMap { Int($0) })
      #expect(resident <= 64 << 10, "\(resident) KiB")
    }
  }

  @Test("A port that is taken is an error that says what to do")
  func takenPort() async throws {
    try await BackendBehindGate.serving { household in
      let server = try await LabPageServer(at: household)
      defer { server.process.kill() }
      let run = try await ChildProcess.run(
        Places.product("attest"),
        [
          "lab", household.socketURL, "--authority", household.gate.folder.path, "--messages", household.log, "--port",
          server.port,
        ])
      #expect(run.exit == .code(71))
      #expect(run.errors.last == "hint: another port: --port 0")
    }
  }
}
