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
  @Test(arguments: ["check", "lookup", "store", "remove"])
  func `without a bus, each call reports that there is none`(call: String) async throws {
    try await Places.withTemporaryFolder { folder async throws in
      for address in [nil, "", "unix:path=\(folder)/absent", "nonsense"] {
        let environment = PrivateBus.environment(in: folder, address: address)
        #expect(
          try await PrivateBus.probe([call, "app=x"], environment: environment) == "unavailable", "\(address ?? "-")")
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
    try await Places.withTemporaryFolder { folder async throws in
      let bus = try await PrivateBus(in: folder, service)
      defer { bus.end() }
      #expect(try await bus.probe("lookup", "app=x") == "unavailable")
    }
  }

  @Test func `a service that starts and does not answer has the time limit`() async throws {
    try await Places.withTemporaryFolder { folder async throws in
      let bus = try await PrivateBus(in: folder, .command("echo $$ >\(folder)/id; exec sleep 30"))
      defer { bus.end() }
      #expect(try await bus.probe("lookup", "app=x", limit: 1) == "timed out")
      let id = try String(contentsOfFile: folder + "/id", encoding: .utf8).split(separator: "\n").first.flatMap {
        pid_t($0)
      }
      kill(try #require(id), SIGTERM)
    }
  }

  @Test func `a bus that does not answer has a time limit of its own`() async throws {
    try await Places.withTemporaryFolder { folder async throws in
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
      #expect(try await PrivateBus.probe(["lookup", "app=x"], environment: environment) == "timed out")
    }
  }

  @Test func `a bus that accepts the connection and does not answer has the time limit`() async throws {
    try await Places.withTemporaryFolder { folder async throws in
      let bus = try await PrivateBus(in: folder, .none, dropsAnswers: true)
      defer { bus.end() }
      #expect(try await bus.probe("lookup", "app=x", limit: 1) == "timed out")
    }
  }
}
