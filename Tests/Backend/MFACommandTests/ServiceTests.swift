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
      // The time in which the reload must happen.
      try place.configure("shutdown: { unready_delay: 5s }")
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
        // What the backend sent before its first failed probe is in the socket then, and nothing may follow.
        _ = try await backend.process.errors.first("a failed probe") { $0.contains(line) }
        while manager.isWaiting { _ = await manager.next() }
        _ = try await backend.process.errors.first(4, "more failed probes") { $0.contains(line) }
        #expect(!manager.isWaiting)
      }
    }
  }

  @Test("With a socket unit a restart refuses no connection: requests wait for the next process")
  func passedSocket() async throws {
    try await BackendInstallation.make { place in
      let unit = try await SocketUnit(
        at: "127.0.0.1", command: [Places.product("mfa-backend"), "run", "-c", place.file])
      defer { unit.process.kill() }
      // The unit names the address of the file, as an operator writes both.
      try place.configure(listen: "127.0.0.1:\(unit.port)")
      let keys = "http://127.0.0.1:\(unit.port)/.well-known/jwks.json"
      async let early = curl("GET", keys, nil, ["--include"])
      unit.start()
      let answer = try await early
      #expect(answer.status == 200)
      // A response has a date with Hummingbird's server and with ours (RFC 9110, section 5.6.7).
      let dates = answer.text.split(whereSeparator: \.isNewline).filter { $0.lowercased().hasPrefix("date: ") }
      #expect(dates.count == 1 && dates.allSatisfy { $0.hasSuffix(" GMT") && $0.count == 35 }, "\(answer.text)")
      #expect(try await place.operate("status").exit == .code(0))
      kill(try await unit.started(1), SIGTERM)
      #expect(try await unit.ended(1) == 0)
      // No process accepts; the kernel completes connections for the socket that the unit keeps.
      async let waiting = curl("GET", keys)
      unit.start()
      #expect(try await waiting.status == 200)
      kill(try await unit.started(2), SIGTERM)
      unit.process.closeInput()
      #expect(try await unit.process.exit(within: .seconds(30)) == .code(0))
    }
  }

  @Test("A passed Unix socket is served, and its file stays for the next process")
  func passedUnixSocket() async throws {
    try await BackendInstallation.make { place in
      let path = place.folder + "/backend.sock"
      try place.configure(listen: "unix:\(path)")
      let unit = try await SocketUnit(at: path, command: [Places.product("mfa-backend"), "run", "-c", place.file])
      defer { unit.process.kill() }
      for number in 1...2 {
        unit.start()
        let answer = try await curl("GET", "http://localhost/.well-known/jwks.json", nil, ["--unix-socket", path])
        #expect(answer.status == 200)
        kill(try await unit.started(number), SIGTERM)
        #expect(try await unit.ended(number) == 0)
      }
    }
  }

  @Test("A backend whose socket unit has passed no socket does not start, and names the unit")
  func missingSocket() async throws {
    try await BackendInstallation.make { place in
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("mfa-backend"), ["run", "-c", place.file], environment: ["SOCKET_UNIT": "mfa-backend.socket"])
      #expect(exit == .code(78))
      #expect(errors.contains { $0.contains("mfa-backend.socket has passed no socket") }, "\(errors)")
    }
  }

  @Test(
    "A passed socket at another address than that of the file, on all addresses, or one of two is refused by name",
    arguments: [
      (["127.0.0.1"], "127.0.0.1:1", "but listen is 127.0.0.1:1"),
      (["0.0.0.0"], "127.0.0.1:0", "systemd passes a socket at an address that is not on loopback"),
      (["127.0.0.1", "127.0.0.1"], "127.0.0.1:0", "systemd passes 2 sockets, and the backend serves one"),
    ])
  func wrongSocket(places: [String], listen: String, reason: String) async throws {
    try await BackendInstallation.make { place in
      try place.configure(listen: listen)
      let unit = try await SocketUnit(at: places, command: [Places.product("mfa-backend"), "run", "-c", place.file])
      defer { unit.process.kill() }
      unit.start()
      #expect(try await unit.ended(1) == 78)
      unit.process.closeInput()
      let errors = try await unit.process.errors.all()
      #expect(errors.contains { $0.hasPrefix("error: ") && $0.contains(reason) }, "\(errors)")
      #expect(errors.contains { $0.hasPrefix("hint: ") && $0.contains("ListenStream=") })
    }
  }
}
