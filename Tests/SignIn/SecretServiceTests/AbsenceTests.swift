import Foundation
import Glibc
import TestSupport
import Testing

@Suite(
  "A session without a secret service", .timeLimit(.minutes(2)),
  .enabled("dbus-daemon is not installed; scripts/setup --tests installs it") {
    FileManager.default.isExecutableFile(atPath: "/usr/bin/dbus-daemon")
  })
struct AbsenceTests {
  /// Less than the five seconds that a client waits for a bus without an answer.
  private static let limit = Duration.seconds(4)

  /// Calls `body` and returns how long it took: the shortest of some tries, if a busy machine needs `limit` or longer.
  private func time(_ body: () async throws -> Void) async throws -> Duration {
    var shortest = Duration.seconds(60)
    for _ in 1...3 where shortest >= Self.limit {
      let start = ContinuousClock.now
      try await body()
      shortest = min(shortest, ContinuousClock.now - start)
    }
    return shortest
  }

  @Test(arguments: ["check", "lookup", "store", "remove"])
  func `without a bus, each call reports at once that there is none`(call: String) async throws {
    try await Places.withTemporaryFolder { folder in
      for address in [nil, "", "unix:path=\(folder)/absent", "nonsense"] {
        let spent = try await time { () async throws in
          let environment = PrivateBus.environment(in: folder, address: address)
          #expect(
            try await PrivateBus.probe([call, "app=x"], environment: environment) == "unavailable", "\(address ?? "-")")
        }
        #expect(spent < Self.limit)
      }
      // No bus was started.
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }
  }

  @Test func `the bus of the runtime folder is found without a variable`() async throws {
    try await Places.withTemporaryFolder { folder in
      let bus = try await PrivateBus(in: folder, .command("exit 1"))
      defer { bus.end() }
      let environment = PrivateBus.environment(in: folder, address: nil)
      let run = try await ChildProcess.run(
        try Places.product("keyring-probe"), ["check"], environment: environment, within: .seconds(20))
      #expect(run.output == ["unavailable"])
      // The service was asked for.
      #expect(run.errors.joined().contains("org.freedesktop.secrets"))
    }
  }

  @Test(arguments: [PrivateBus.Service.none, .command("exit 1"), .command("exec /absent")])
  func `a service that is unknown or does not start is unavailable`(service: PrivateBus.Service) async throws {
    try await Places.withTemporaryFolder { folder in
      let bus = try await PrivateBus(in: folder, service)
      defer { bus.end() }
      let spent = try await time { () async throws in #expect(try await bus.probe("lookup", "app=x") == "unavailable") }
      #expect(spent < Self.limit)
    }
  }

  @Test func `a service that starts and does not answer has the time limit`() async throws {
    try await Places.withTemporaryFolder { folder in
      let bus = try await PrivateBus(in: folder, .command("echo $$ >\(folder)/id; exec sleep 30"))
      defer { bus.end() }
      let spent = try await time { () async throws in
        #expect(try await bus.probe("lookup", "app=x", limit: 1) == "timed out")
      }
      #expect(spent >= .seconds(1) && spent < Self.limit)
      let id = try String(contentsOfFile: folder + "/id", encoding: .utf8).split(separator: "\n").first.flatMap {
        pid_t($0)
      }
      kill(try #require(id), SIGTERM)
    }
  }

  @Test func `a bus that does not answer has five seconds`() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/silent"
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      let isBound = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 && listen(descriptor, 8) == 0
        }
      }
      try #require(isBound)
      let environment = PrivateBus.environment(in: folder, address: "unix:path=\(path)")
      let start = ContinuousClock.now
      #expect(try await PrivateBus.probe(["lookup", "app=x"], environment: environment) == "timed out")
      // The limit of the program is 20 seconds.
      #expect(ContinuousClock.now - start >= .seconds(4))
    }
  }

  @Test func `a bus that accepts the connection and does not answer has the time limit`() async throws {
    try await Places.withTemporaryFolder { folder in
      let bus = try await PrivateBus(in: folder, .none, dropsAnswers: true)
      defer { bus.end() }
      let spent = try await time { () async throws in
        #expect(try await bus.probe("lookup", "app=x", limit: 1) == "timed out")
      }
      #expect(spent >= .seconds(1) && spent < Self.limit)
    }
  }
}
