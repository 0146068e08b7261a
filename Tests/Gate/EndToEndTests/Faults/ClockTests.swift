import Foundation
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport

/// libfaketime, which gives a process another time than the system's.
private enum OtherTime {
  static let library = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
    .first { FileManager.default.fileExists(atPath: $0) }

  /// Returns an environment that changes the wall clock only. Timeouts of the kernel are not affected.
  static func environment(clock: String) -> [String: String?] {
    [
      "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": "1",
      "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
    ]
  }
}

@Suite("Clock jumps", .serialized, .timeLimit(.minutes(2)))
struct ClockTests {
  @Test(
    "A clock jump closes no session and revives no spent nonce, and new devices and sockets are admitted",
    .enabled(if: OtherTime.library != nil && !Sanitizer.isOn, "libfaketime is missing, or a sanitizer is active"),
    arguments: [["+3600", "-3600"], ["-86400", "+0"], ["+8000000", "+0"]])
  func jumps(_ clocks: [String]) async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder, GateConfiguration(upstream: backend.upstream))
      try "+0".write(toFile: folder + "/clock", atomically: true, encoding: .utf8)
      let process = try ChildProcess(
        Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"],
        environment: [String: String?].gateless.merging(OtherTime.environment(clock: folder + "/clock")) { $1 },
        in: folder)
      defer { process.kill() }
      let gate = RunningGate(
        process: process, folder: folder, port: try await GateLog(lines: process.errors).listeningPort())
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let spent = try device.headers(over: await visitor.challenge())
      let open = try await visitor.open(spent)
      let unspent = try device.headers(over: await visitor.challenge(), count: 2)
      var count: UInt32 = 2
      for clock in clocks {
        try clock.write(toFile: folder + "/clock", atomically: true, encoding: .utf8)
        try await expectEcho(over: open)
        #expect(try await visitor.refusal(of: spent).status == 401)
        count += 1
        try await expectEcho(over: visitor.open(device.headers(over: await visitor.challenge(), count: count)))
        if clock == clocks.first {
          // Issued an hour or more from the current time, in either direction: its age cannot be determined.
          #expect(try await visitor.refusal(of: unspent).status == 401)
        }
      }
      try await expectEcho(over: open)
    }
  }

  @Test(
    "A gate whose clock is minutes off names it to attest, in its log and in /readyz, until a registration is in time",
    .enabled(if: OtherTime.library != nil && !Sanitizer.isOn, "libfaketime is missing, or a sanitizer is active"))
  func wrongClock() async throws {
    // With a clock that is behind, this library stops the timers of the process for as long. `RegistrationTests` has
    // such clocks.
    let clock = "+420"
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(
        folder, GateConfiguration(sections: ["admin: { listen: \"unix:\(folder)/admin.sock\" }"]))
      try clock.write(toFile: folder + "/clock", atomically: true, encoding: .utf8)
      let process = try ChildProcess(
        Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"],
        environment: [String: String?].gateless.merging(OtherTime.environment(clock: folder + "/clock")) { $1 },
        in: folder)
      defer { process.kill() }
      let log = GateLog(lines: process.errors)
      let url = "wss://localhost:\(try await log.listeningPort())/"
      try FileManager.default.createDirectory(atPath: folder + "/device", withIntermediateDirectories: true)
      var environment = [String: String?].gateless
      for name in ["XDG_DATA_HOME", "XDG_STATE_HOME"] { environment[name] = folder + "/device" }
      func register() async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
        try await ChildProcess.run(
          Places.product("attest"), ["register", url, "--authority", folder], environment: environment,
          within: .seconds(20))
      }
      func readiness() async throws -> [String] {
        try await ChildProcess.run(
          Places.tool("curl"), ["-s", "--unix-socket", folder + "/admin.sock", "http://localhost/readyz?verbose"]
        ).output
      }
      #expect(try await !readiness().contains { $0.contains("clock") })
      let refused = try await register()
      // EX_TEMPFAIL: a script tries again, and the operator of the gate is the one to act.
      #expect(refused.exit == .code(75) && refused.errors.first?.contains("clock_wrong") == true, "\(refused)")
      #expect(refused.errors.last?.hasPrefix("hint: set the clock of the gate's machine") == true, "\(refused)")
      let line = try #require(try await readiness().first { $0.hasPrefix("[+] clock: WARNING: ") })
      #expect(line.contains("seconds ahead of Apple's") && line.contains("set the clock"), "\(line)")
      #expect(try await readiness().last == "ready")

      try "+0".write(toFile: folder + "/clock", atomically: true, encoding: .utf8)
      let accepted = try await register()
      #expect(accepted.exit == .code(0), "\(accepted)")
      #expect(try await !readiness().contains { $0.contains("clock") })
      process.send(SIGTERM)
      #expect(try await process.exit() == .code(0))
      let messages = process.errors.lines.compactMap { LogEntry(line: $0)?.message }.filter { $0.hasPrefix("clock ") }
      #expect(
        messages == [
          "clock wrong: registrations are refused as clock_wrong", "clock in time again: registrations are accepted",
        ])
    }
  }
}
