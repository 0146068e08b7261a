import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Resources that run out while a gate serves.
@Suite("Exhausted resources", .serialized, .timeLimit(.minutes(5)))
struct ScarcityTests {
  /// Starts the gate that `RunningGate.prepare` set up in `folder`, through a shell that runs `limits` first.
  private func start(in folder: String, after limits: String = "true") async throws -> RunningGate {
    let process = try ChildProcess(
      Places.tool("bash"),
      ["-c", "\(limits) && exec \"$0\" run -c \"$1\"", Places.product("sallyport"), folder + "/gate.yaml"],
      environment: .gateless, in: folder)
    return RunningGate(
      process: process, folder: folder, port: try await GateLog(lines: process.errors).listeningPort())
  }

  @Test("A gate without free descriptors reports it, keeps its open sockets, and accepts new ones later")
  func descriptors() async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(
        folder,
        GateConfiguration(
          upstream: backend.upstream, enforcement: "off",
          sections: ["admin: { listen: \"unix:\(folder)/admin.sock\" }"]))
      let gate = try await start(in: folder, after: "ulimit -n 100")
      defer { gate.process.kill() }
      let visitor = try Visitor(gate)
      let open = try await visitor.open()
      let engine = try ClientEngine()
      var flood: [ClientConnection] = []
      for _ in 0..<200 { flood.append(try await engine.connect(host: "127.0.0.1", port: gate.port, tls: nil)) }
      let entry = try await gate.log.first("the lack of descriptors") { $0.message.hasPrefix("accept paused") }
      #expect(entry.level == "error")
      let readiness = try await ChildProcess.run(
        Places.tool("curl"), ["-s", "--unix-socket", folder + "/admin.sock", "http://localhost/readyz?verbose"]
      ).output
      #expect(
        readiness.contains { $0.hasPrefix("[+] load: WARNING: overloaded: no connection is accepted") },
        "\(readiness)")
      #expect(readiness.last == "ready")
      try await expectEcho(over: open)
      flood.removeAll()
      try await expectEcho(over: visitor.open())
      try await expectEcho(over: open)
    }
  }

  @Test("A gate with an expired certificate serves its open sockets, and accepts new ones after a renewal")
  func certificate() async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder, GateConfiguration(upstream: backend.upstream, enforcement: "off"))
      var authority = try RunningGate.authority.get()
      // Valid for a year from then, so that it expires in six seconds. Until then the gate must have a client.
      try authority.renewServer(at: .now().advanced(by: .seconds(6 - 365 * 86400)))
      try AuthorityFolder(path: folder).save(authority)
      let gate = try await start(in: folder)
      defer { gate.process.kill() }
      let visitor = try Visitor(gate)
      let open = try await visitor.open()
      while Timestamp.now() < authority.server.certificate.notAfter { try await Task.sleep(for: .milliseconds(50)) }
      // The certificate is valid to the end of that second.
      try await eventually { (try? await visitor.connection()) == nil }
      try await expectEcho(over: open)

      try authority.renewServer(at: .now())
      try AuthorityFolder(path: folder).save(authority)
      _ = try await gate.log.first("the new certificate") { $0.message == "certificate reloaded" }
      try await expectEcho(over: visitor.open())
      try await expectEcho(over: open)
    }
  }

  /// Polls until `condition` is true: no event reports the expiry of a certificate.
  private func eventually(_ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(30)
    while try await !condition() {
      try #require(ContinuousClock.now < end)
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  @Test("A gate writes no core file, which would contain its memory")
  func cores() async throws {
    try await RunningGate.serving { gate in
      let limits = try String(contentsOfFile: "/proc/\(gate.process.id)/limits", encoding: .utf8)
      let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
      #expect(line.split(separator: " ").filter { $0 == "0" }.count == 2, "\(line)")
      let filter = try String(contentsOfFile: "/proc/\(gate.process.id)/coredump_filter", encoding: .utf8)
      #expect(Int(filter.trimmingCharacters(in: .whitespacesAndNewlines), radix: 16) == 0)
    }
  }
}

@Suite("Permissions of the private key", .serialized, .timeLimit(.minutes(2)))
struct ReadableKeyTests {
  @Test(
    "A private key that other users can read prevents the start and the reload of a renewed certificate",
    arguments: [0o644, 0o604])
  func start(_ mode: Int) async throws {
    try await Places.withTemporaryFolder { folder in
      try RunningGate.prepare(folder)
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder + "/server.key")
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"], environment: .gateless, in: folder)
      #expect(exit == .code(78))
      #expect(errors.contains { $0.contains("tls.key_file: every user of this machine can read") }, "\(errors)")
      #expect(errors.contains { $0.hasPrefix("hint: run chmod 600 ") })
    }
    try await RunningGate.serving { gate in
      var authority = try RunningGate.authority.get()
      try authority.renewServer(at: .now())
      try AuthorityFolder(path: gate.folder).save(authority)
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: gate.folder + "/server.key")
      _ = try await gate.log.first("the refusal") { $0.message.hasPrefix("certificate reload failed") }
      #expect(try await Visitor(gate).send("GET", "/attest/challenge").status == 200)
    }
  }
}
