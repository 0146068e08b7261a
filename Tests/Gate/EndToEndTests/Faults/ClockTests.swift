import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport

/// libfaketime, which tells a process another time than the system's.
private enum OtherTime {
  static let library = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
    .first { FileManager.default.fileExists(atPath: $0) }

  /// The wall clock alone is another: what the kernel waits for is not.
  static func environment(clock: String) -> [String: String?] {
    [
      "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": "1",
      "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
    ]
  }
}

@Suite("A clock that jumps", .serialized, .timeLimit(.minutes(2)))
struct ClockTests {
  @Test(
    "ends no session, makes no spent nonce good again, and new devices and sockets come in as before",
    .enabled(if: OtherTime.library != nil && !Sanitizer.isOn, "libfaketime is not there, or a sanitizer is"),
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
          // Issued an hour or more away from now, in either direction: nobody can say how long ago that is.
          #expect(try await visitor.refusal(of: unspent).status == 401)
        }
      }
      try await expectEcho(over: open)
    }
  }
}
