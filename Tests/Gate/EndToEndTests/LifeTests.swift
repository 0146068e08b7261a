import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Start and stop of a gate", .serialized, .timeLimit(.minutes(10)))
struct LifeTests {
  @Test(
    "On a stop signal, a gate closes its sockets with 1001 and exits 0",
    arguments: [SIGTERM, SIGINT])
  func stops(signal: Int32) async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      var sockets: [ClientWebSocket] = []
      for count in 1...3 {
        let credentials = try device.headers(over: await visitor.challenge(), count: UInt32(count))
        sockets.append(try await visitor.open(credentials))
      }
      gate.process.send(signal)
      for socket in sockets {
        guard case .ended(let ending) = try await socket.receive() else {
          Issue.record("received a message instead of a Close frame")
          continue
        }
        #expect(ending.code == 1001)
      }
      #expect(try await gate.process.exit() == .code(0))
      let entries = try await gate.process.errors.all().compactMap { LogEntry(line: $0) }
      let ends = entries.filter { $0.message == "session closed" }
      #expect(ends.map(\.closeCode) == [1001, 1001, 1001])
      await #expect(throws: ClientError.self) { try await visitor.connection() }
    }
  }

  @Test("A gate does not start at an address at which another gate listens")
  func occupied() async throws {
    try await RunningGate.serving { gate in
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["run", "-c", gate.folder + "/gate.yaml", "--set", "listen.port=\(gate.port)"],
        environment: .gateless, in: gate.folder, within: .seconds(20))
      #expect(exit == .code(71))
      #expect(errors.contains { $0.hasPrefix("error: ") && $0.contains("\(gate.port)") })
      #expect(errors.last?.hasPrefix("hint: ") == true)
      // The first gate is not affected.
      #expect(try await Visitor(gate).send("GET", "/attest/challenge").status == 200)
    }
  }
}

@Suite("The block of the guide's Part 6 as .env", .timeLimit(.minutes(10)))
struct GuideEnvironmentTests {
  /// Copied unchanged from the guide.
  static let block = """
    REQUIRE_APP_AUTH=true
    APPATTEST_BUNDLE_ID=com.example.yourapp   # must match exactly
    APPATTEST_TEAM_ID=AAABBBCCC1             # 10-char Apple Developer team ID
    MTLS_CLIENT_CA_PATH=./config/client-ca/ca.pem  # for simulator fallback

    """

  @Test("The block starts the gate together with a certificate")
  func starts() async throws {
    try await Places.withTemporaryFolder { folder in
      try await GuideCommands.makeClientCertificate(in: folder)
      let process = try start(Self.block, with: Self.certificate, in: folder)
      defer { process.kill() }
      let port = try await GateLog(lines: process.errors).listeningPort()
      let gate = RunningGate(process: process, folder: folder, port: port)
      #expect(try await Visitor(gate).refusal().headers.first("X-Attest-Error") == "no_credentials")
      // The gate trusts only Apple's root, so a simulated device is refused.
      let visitor = try Visitor(gate)
      var device = try TestDevice()
      device.app.appID = "AAABBBCCC1.com.example.yourapp"
      device.app.environment = .production
      let nonce = try await visitor.challenge()
      let refused = try await visitor.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
      #expect(refused.headers.first("X-Attest-Error") == "chain_untrusted")
    }
  }

  @Test("Without a certificate, the block does not start the gate, and a hint is printed")
  func bare() async throws {
    try await Places.withTemporaryFolder { folder in
      try await GuideCommands.makeClientCertificate(in: folder)
      let process = try start(Self.block, with: [], in: folder)
      #expect(try await process.exit(within: .seconds(20)) == .code(78))
      let errors = try await process.errors.all()
      #expect(errors.contains { $0.contains("tls.cert_file") }, "\(errors)")
      #expect(errors.contains { $0.hasPrefix("hint: ") }, "\(errors)")
    }
  }

  @Test("E-001 REQUIRE_APP_AUTH=false turns enforcement off, and the gate logs a warning")
  func open() async throws {
    let backend = try await EchoBackend()
    try await Places.withTemporaryFolder { folder in
      let route = ["SALLYPORT_ROUTES__0__PATH=/", "SALLYPORT_ROUTES__0__UPSTREAM=\(backend.upstream)"]
      try await GuideCommands.makeClientCertificate(in: folder)
      let block = Self.block.replacing("AUTH=true", with: "AUTH=false")
      let process = try start(block, with: Self.certificate + route, in: folder)
      defer { process.kill() }
      let port = try await GateLog(lines: process.errors).listeningPort()
      let warning = process.errors.lines.compactMap { LogEntry(line: $0) }.first { $0.message.contains("OFF") }
      #expect(warning?.level == "warning")
      let gate = RunningGate(process: process, folder: folder, port: port)
      let socket = try await Visitor(gate).open()
      try await expectEcho(over: socket)
      let headers = try await backend.firstHeaders()
      #expect(headers["x-attest-method"] == "none")
      #expect(headers["x-attest-key-id"] == nil)
    }
  }

  private static let certificate = [
    "SALLYPORT_TLS__CERT_FILE=./server.pem", "SALLYPORT_TLS__KEY_FILE=./server.key",
  ]

  private func start(_ block: String, with lines: [String], in folder: String) throws -> ChildProcess {
    try AuthorityFolder(path: folder).save(RunningGate.authority.get())
    let rest = lines + ["SALLYPORT_LISTEN__PORT=0", "SALLYPORT_STORE__URL=sqlite://\(folder)/state.db"]
    try (block + rest.map { $0 + "\n" }.joined()).write(toFile: folder + "/.env", atomically: true, encoding: .utf8)
    return try ChildProcess(Places.product("sallyport"), ["run"], environment: .gateless, in: folder)
  }
}
