import Foundation
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
}
