import Foundation
import Glibc
import MFAFixtures
import TestSupport
import Testing

@Suite("The backend as a service", .serialized, .timeLimit(.minutes(2)))
struct BackendServiceTests {
  private func serve(
    _ place: BackendInstallation, for manager: ServiceManager, _ body: (BackendProcess) async throws -> Void
  ) async throws {
    let backend = try await BackendProcess(
      ["-c", place.file],
      environment: ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000", "WATCHDOG_PID": nil])
    defer { backend.process.kill() }
    try await body(backend)
  }

  @Test("the backend reports that it is ready and alive, that it reloads, and at SIGTERM that it stops")
  func notifications() async throws {
    try await BackendInstallation.make { place in
      let manager = try ServiceManager(in: place.folder)
      try await serve(place, for: manager) { backend in
        var messages: Set<String> = []
        while !messages.isSuperset(of: ["READY=1\nSTATUS=serving", "WATCHDOG=1"]) {
          messages.insert(try #require(await manager.next()))
        }
        backend.process.send(SIGHUP)
        #expect(try #require(await manager.news()).hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
        #expect(await manager.news() == "READY=1\nSTATUS=serving")
        backend.process.send(SIGTERM)
        #expect(await manager.news() == "STOPPING=1\nSTATUS=closing its sockets")
        #expect(try await backend.process.exit(within: .seconds(20)) == .code(0))
      }
    }
  }

  @Test("SIGHUP during a shutdown does not report to systemd that the backend serves")
  func lateHangup() async throws {
    try await BackendInstallation.make { place in
      try place.configure("shutdown: { unready_delay: 2s }")
      let manager = try ServiceManager(in: place.folder)
      try await serve(place, for: manager) { backend in
        while try #require(await manager.next()) != "READY=1\nSTATUS=serving" {}
        backend.process.send(SIGTERM)
        while try #require(await manager.next()) != "STOPPING=1\nSTATUS=closing its sockets" {}
        backend.process.send(SIGHUP)
        _ = try await backend.process.errors.first("the reload") { $0.contains("configuration reloaded") }
        #expect(try await backend.process.exit(within: .seconds(20)) == .code(0))
        while manager.isWaiting { #expect(await manager.next() == "WATCHDOG=1") }
      }
    }
  }

  @Test("a backend that ends leaves the socket of another one that has replaced its own")
  func replacedSocket() async throws {
    try await BackendInstallation.make { place in
      try await place.serving { old in
        try FileManager.default.removeItem(atPath: place.socket)
        try await place.serving { new async throws in
          #expect(try await old.stop() == .code(0))
          #expect(try await place.admin("GET", "/livez").status == 200)
          #expect(try await new.stop() == .code(0))
        }
        #expect(!FileManager.default.fileExists(atPath: place.socket))
      }
    }
  }

  @Test("a backend that cannot be reached at its own address reports no life, so that systemd restarts it")
  func unreachable() async throws {
    try await BackendInstallation.make { place in
      let socket = place.folder + "/mfa.sock"
      try place.configure(listen: "unix:" + socket)
      let manager = try ServiceManager(in: place.folder)
      try await serve(place, for: manager) { backend in
        while try #require(await manager.next()) != "WATCHDOG=1" {}
        try FileManager.default.removeItem(atPath: socket)
        let line = "backend does not answer itself"
        for _ in 1...3 { _ = try await backend.process.errors.first("the probe") { $0.contains(line) } }
        // At most the messages that were sent before are left.
        var sent = 0
        while sent < 5, manager.isWaiting {
          _ = await manager.next()
          sent += 1
        }
        #expect(sent <= 2)
      }
    }
  }
}
