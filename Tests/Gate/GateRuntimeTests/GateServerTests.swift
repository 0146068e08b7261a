import ACME
import ByteCoding
import Commands
import ConfigurationEngine
import Foundation
import GateService
import Glibc
import Locking
import Observability
import ProcessFrame
import Settings
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import GateRuntime

@Suite("A gate in the test's process", .serialized, .timeLimit(.minutes(2)))
struct GateServerTests {
  /// The configuration and the certificates of a gate.
  private struct Files {
    let folder: String
    let authority: AuthorityFolder

    init(in folder: String) throws {
      self.folder = folder
      authority = AuthorityFolder(path: folder + "/authority")
      _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
      try configure()
    }

    var loader: SettingsLoader {
      SettingsLoader(
        file: folder + "/gate.yaml", flags: [], environment: ["HOME": folder], workingDirectory: folder)
    }

    /// The settings of certificates by ACME from a server that does not answer.
    var acme: String {
      "{ acme: { domains: [gate.example], directory: \"https://localhost:1/dir\", ca_file: \"\(caFile)\" } }"
    }
    var caFile: String { folder + "/ca.pem" }

    /// Makes `caFile` a copy of `file`.
    func trust(_ file: String) throws {
      try String(contentsOfFile: file, encoding: .utf8).write(toFile: caFile, atomically: true, encoding: .utf8)
    }

    func configure(port: Int = 0, tls: String? = nil, _ more: String = "") throws {
      let files = "{ cert_file: \"\(authority.serverCertificatePath)\", key_file: \"\(authority.serverKeyPath)\" }"
      try """
      version: 1
      listen: { address: 127.0.0.1, port: \(port), loops: 1 }
      tls: \(tls ?? files)
      routes: [{ path: /, upstream: "ws://127.0.0.1:1" }]
      store: { url: "sqlite://\(folder)/state.db" }
      shutdown: { unready_delay: 0s, drain_timeout: 1s }
      log: { level: error }
      \(more)
      """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
    }

    /// Returns the status of a challenge request at `port`.
    func status(at port: UInt16) async throws -> Int {
      let connection = try await ClientEngine().connect(
        host: "127.0.0.1", port: port, tls: ClientTLS(authorityFile: authority.tlsAuthorityPath),
        verifying: "localhost", timeout: .seconds(20))
      let host = HeaderFields([.init(name: "Host", value: "localhost")])
      return try await connection.send("GET", "/attest/challenge", headers: host).status
    }
  }

  /// Runs `body` with a serving gate, and stops the gate unless `body` has stopped it.
  private func serving(_ body: (Files, GateServer, Task<Void, Never>) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let files = try Files(in: folder)
      let server = try await GateServer.open(files.loader, InheritedSockets([]), signals: .none)
      let service = Task { await server.serve() }
      do {
        try await body(files, server, service)
      } catch {
        server.stops.request(.end("the test failed"))
        await service.value
        throw error
      }
      server.stops.request(.end("the test is over"))
      await service.value
    }
  }

  /// Reloads, and returns the outcome and the effective maximum age of sessions.
  private func reload(_ server: GateServer) async -> (outcome: ReloadOutcome, maxAge: Duration?) {
    let outcome = await server.reload(because: "a test")
    return (outcome, await server.settings.session.limits.maxAge)
  }

  @Test("A reload applies a valid configuration, ignores an invalid one, and names settings that need a restart")
  func reload() async throws {
    try await serving { files, server, _ in
      try files.configure("session: { max_age: 1h }")
      let first = await reload(server)
      #expect(first.outcome == ReloadOutcome.done(needingRestart: []))
      #expect(first.maxAge == Duration.seconds(3600))

      try files.configure("session: { max_age: forever }")
      let second = await reload(server)
      guard case .refused(let fault) = second.outcome else {
        throw Unexpected("an invalid configuration was accepted")
      }
      #expect(fault.contains("session.max_age"))
      #expect(second.maxAge == Duration.seconds(3600))

      let port = server.port
      func listed(_ key: String) async -> String? {
        await server.configurationListing.settings.first { $0.key == key }?.value
      }
      let listedPort = await listed("listen.port")
      try files.configure(port: 1, "session: { max_age: 2h }")
      let third = await reload(server)
      #expect(third.outcome == ReloadOutcome.done(needingRestart: ["listen"]))
      #expect(third.maxAge == Duration.seconds(7200))
      #expect(server.port == port)
      let status = try await files.status(at: port)
      #expect(status == 200)
      // The listing shows what is in force.
      let (kept, age) = (await listed("listen.port"), await listed("session.max_age"))
      #expect(kept == listedPort && kept != "1" && age == "2h")
      let changes = (await server.configurationListing.changes ?? []).map(\.key)
      #expect(changes.contains("session.max_age") && !changes.contains("listen.port"), "\(changes)")
    }
  }

  @Test("A gate that leaves refuses a reload: it would begin services that the new process has")
  func reloadWhileLeaving() async throws {
    try await serving { _, server, service in
      server.stops.request(.end("a test"))
      await service.value
      guard case .refused(let fault) = await server.reload(because: "a test") else {
        throw Unexpected("a gate that has left was reloaded")
      }
      #expect(fault.contains("shutting down"))
    }
  }

  // MARK: ACME

  /// Runs `body` with a gate whose `tls.acme.ca_file` was removed between its start and its first order.
  private func servingWithoutCAFile(
    pause: Duration, _ body: (Files, GateServer) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let files = try Files(in: folder)
      try files.trust(files.authority.tlsAuthorityPath)
      try files.configure(tls: files.acme)
      let server = try await GateServer.open(files.loader, InheritedSockets([]), signals: .none)
      server.keeperPause.withLock { $0 = pause }
      try FileManager.default.removeItem(atPath: files.caFile)
      let service = Task { await server.serve() }
      let result: Result<Void, any Error>
      do { result = .success(try await body(files, server)) } catch { result = .failure(error) }
      server.stops.request(.end("the test is over"))
      await service.value
      try result.get()
    }
  }

  /// Waits until `/readyz` says that the first certificate is missing because of `reason`.
  private func waiting(_ server: GateServer, because reason: String) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while server.memory.managed.wait?.contains(reason) != true {
      guard .now < deadline else { throw Unexpected("not \(reason): \(server.memory.managed.wait ?? "ready")") }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test("A CA file of the ACME server that cannot be read for a moment is in the status, and read again later")
  func lateCAFile() async throws {
    try await servingWithoutCAFile(pause: .milliseconds(200)) { files, server in
      try await waiting(server, because: files.caFile)
      let status = try #require(server.memory.managed.status)
      #expect(status.lastFailure?.code == "storage" && status.nextAttempt != nil)
      let metrics = String(decoding: await server.memory.metrics.registry.exposition(), as: UTF8.self)
      let count = try #require(metrics.firstMatch(of: /sallyport_acme_failures_total\{code="storage"\} ([0-9]+)/))
      #expect((Int(count.1) ?? 0) > 0)
      try files.trust(files.authority.tlsAuthorityPath)
      try await waiting(server, because: "localhost:1 cannot be reached")
    }
  }

  @Test("A reload reads the CA file of the ACME server again, and leaves an order alone if nothing changed")
  func changedCAFile() async throws {
    try await servingWithoutCAFile(pause: .seconds(3600)) { files, server in
      try await waiting(server, because: files.caFile)
      try files.trust(files.authority.tlsAuthorityPath)
      for (file, isNew) in [
        (files.authority.tlsAuthorityPath, true), (files.authority.tlsAuthorityPath, false),
        (files.authority.attestationRootPath, true),
      ] {
        let before = await server.generation.certificateTask
        try files.trust(file)
        let answer = await reload(server)
        #expect(answer.outcome == .done(needingRestart: []))
        let after = await server.generation.certificateTask
        #expect((after != before) == isNew)
        try await waiting(server, because: "localhost:1 cannot be reached")
      }
    }
  }

  @Test("A reload from ACME to certificate files forgets the certificate, which may expire before ACME is used again")
  func forgottenCertificate() async throws {
    try await serving { files, server, _ in
      try files.trust(files.authority.tlsAuthorityPath)
      let managed = server.memory.managed
      for _ in 0..<2 {
        try files.configure(tls: files.acme)
        let there = await reload(server)
        #expect(there.outcome == .done(needingRestart: []) && !managed.material.isEmpty && managed.status != nil)
        try files.configure()
        let back = await reload(server)
        #expect(back.outcome == .done(needingRestart: []) && managed.material.isEmpty && managed.status == nil)
        #expect(try await files.status(at: server.port) == 200)
      }
    }
  }

  @Test("By default, changes of the store are read twice in the two seconds allowed to close a revoked key's sessions")
  func lookInterval() async throws {
    try await serving { _, server, _ in
      let interval = await server.settings.session.lookInterval
      #expect(interval == .seconds(1))
    }
  }

  @Test("During a drain requests in progress are answered, and afterwards no process listens")
  func drain() async throws {
    try await serving { files, server, service in
      let status = try await files.status(at: server.port)
      #expect(status == 200)
      #expect(server.stops.request(.end("a test")))
      await service.value
      await #expect(throws: ClientError.self) { try await files.status(at: server.port) }
      // A graceful upgrade after the stop is refused.
      #expect(!server.stops.request(.replaced(by: GateOfThisProcess())))
    }
  }

  /// A new process that is none.
  private struct GateOfThisProcess: NewProcess {
    let id = getpid()
    func release() {}
    func isAskedToEnd() async -> Bool { false }
  }

  /// Returns the sockets of `server` for a new gate, and the pipe on which the new gate reports its start.
  private func legacy(of server: GateServer) async throws -> (sockets: InheritedSockets, report: FileHandle) {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    let copies = await server.engine.socketCopies().map { PassedSockets.Passed(descriptor: $0, name: "public") }
    let report = PassedSockets.Passed(descriptor: ends[1], name: UpgradeParent.descriptorName)
    return (InheritedSockets(copies + [report]), FileHandle(fileDescriptor: ends[0], closeOnDealloc: true))
  }

  @Test("A new process uses the inherited socket of an IPv4 address that the settings write as IPv6")
  func inheritedMappedAddress() async throws {
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 127, 0, 0, 1]
    let engine = try Engine(
      listeningAt: .ipv6(mapped, port: 0), loops: 1, tls: nil, responder: AdminRouter([], access: .anyone))
    defer { engine.stop() }
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { close(ends[0]) }
    let copies = await engine.socketCopies()
    let passed = copies.map { PassedSockets.Passed(descriptor: $0, name: "metrics") }
    let report = PassedSockets.Passed(descriptor: ends[1], name: UpgradeParent.descriptorName)
    let inherited = InheritedSockets(passed + [report])
    let taken = inherited.take(.metrics, at: .ipv6(mapped, port: engine.address.port))
    #expect(!copies.isEmpty && taken == copies)
    inherited.closeRest()
    for descriptor in taken { close(descriptor) }
  }

  @Test("A gate hands over to one that inherits its sockets, and stops after its own clients have left")
  func handOver() async throws {
    try await serving { files, old, service in
      let (sockets, report) = try await legacy(of: old)
      let new = try await GateServer.open(files.loader, sockets, signals: .none)
      let text = try report.readToEnd()
      #expect(text == Data("ready\n".utf8))
      #expect(new.port == old.port)
      let further = Task { await new.serve() }
      #expect(old.stops.request(.replaced(by: GateOfThisProcess())))
      await service.value
      let status = try await files.status(at: new.port)
      #expect(status == 200)
      new.stops.request(.end("the test is over"))
      await further.value
    }
  }

  @Test("If the new gate does not start, the old one receives the reason and continues to serve")
  func failedHandOver() async throws {
    try await serving { files, old, _ in
      let (sockets, report) = try await legacy(of: old)
      try files.configure("session: { max_age: forever }")
      await #expect(throws: Failure.self) {
        try await GateServer.open(files.loader, sockets, signals: .none)
      }
      let reason = String(decoding: try report.readToEnd() ?? Data(), as: UTF8.self)
      #expect(reason.contains("session.max_age") && !reason.contains("ready"))
      let status = try await files.status(at: old.port)
      #expect(status == 200)
    }
  }
}

private struct Unexpected: Error {
  let text: String
  init(_ text: String) { self.text = text }
}
