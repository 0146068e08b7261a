import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The debug path", .serialized, .timeLimit(.minutes(10)))
struct DebugPathTests {
  /// Runs a gate that accepts the certificates of `authority`, a path in its folder, in front of an echo server.
  private func serving(
    authority: String = "config/client-ca/ca.pem",
    _ body: (RunningGate, EchoBackend) async throws -> Void
  ) async throws {
    let backend = try await EchoBackend()
    try await Places.withTemporaryFolder { folder in
      try await GuideCommands.makeClientCertificate(in: folder)
      let gate = try await RunningGate(
        GateConfiguration(upstream: backend.upstream, clientAuthority: authority), in: folder)
      defer { gate.process.kill() }
      try await body(gate, backend)
    }
  }

  /// Runs `attest connect` with a certificate and without a device.
  private func connect(
    to gate: RunningGate, certificate: String, key: String
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(
      Places.product("attest"),
      ["connect", gate.url, "--ca", gate.certificateAuthority, "--cert", certificate, "--key", key, "--once", "hello"],
      environment: .gateless, within: .seconds(20))
  }

  @Test("T-48 E-020 A client with the certificate that the guide's commands make, a version 1 leaf, is admitted")
  func admitted() async throws {
    try await serving { gate, backend in
      let folder = gate.folder + "/config/client-ca"
      let (_, text, _) = try await ChildProcess.run(
        Places.tool("openssl"), ["x509", "-in", folder + "/client.crt", "-noout", "-text"])
      #expect(text.contains { $0.contains("Version: 1 (0x0)") })
      let (exit, output, errors) = try await connect(
        to: gate, certificate: folder + "/client.crt", key: folder + "/client.key")
      #expect(exit == .code(0), "\(errors)")
      #expect(output == ["hello"])
      let headers = try await backend.firstHeaders()
      #expect(headers["x-attest-method"] == "mtls")
      #expect(headers["x-attest-key-id"] == nil)
    }
  }

  @Test("A client with the content of the PKCS #12 file is admitted", arguments: ["1.2", "1.3"])
  func bundle(tls: String) async throws {
    try await serving { gate, _ in
      let folder = gate.folder + "/config/client-ca"
      for (flags, file) in [(["-clcerts", "-nokeys"], "app.pem"), (["-nocerts", "-nodes"], "app.key")] {
        let (exit, _, errors) = try await ChildProcess.run(
          Places.tool("openssl"),
          ["pkcs12", "-in", folder + "/client.p12", "-passin", "pass:", "-out", folder + "/" + file] + flags)
        #expect(exit == .code(0), "\(errors)")
      }
      let events = try await PythonProgram.dial.run([
        gate.url, "--ca", gate.certificateAuthority, "--cert", folder + "/app.pem", "--key", folder + "/app.key",
        "--tls", tls, "from a debug build",
      ])
      #expect(events == [["opened": .text("TLSv" + tls)], ["received": .text("from a debug build")]])
    }
  }

  @Test("E-021 The handshake fails for a certificate of another authority")
  func otherAuthority() async throws {
    try await serving { gate, backend in
      let files = try ClientFiles(commonName: "MudApp Debug Client", in: gate.folder)
      let (exit, output, errors) = try await connect(to: gate, certificate: files.certificate, key: files.key)
      // With TLS 1.3 a client learns of the failure only after it has sent its request.
      #expect([.code(69), .code(76)].contains(exit), "\(errors)")
      #expect(output.isEmpty)
      _ = try await gate.log.first("the failed handshake") { $0.message == "TLS handshake failed" }
      #expect(!backend.process.output.lines.contains { $0.contains("headers") })
    }
  }

  @Test(
    "The handshake fails for a certificate outside its validity period",
    arguments: [(0, true), (-2, false), (2, false)]
  )
  func time(yearsFromNow: Int64, isAdmitted: Bool) async throws {
    try await serving(authority: "tls-ca.pem") { gate, backend in
      let start = Timestamp.now().advanced(by: .seconds(yearsFromNow * 365 * 86400))
      let files = try ClientFiles(commonName: "MudApp Debug Client", in: gate.folder, from: start)
      let (exit, output, errors) = try await connect(to: gate, certificate: files.certificate, key: files.key)
      #expect((exit == .code(0)) == isAdmitted, "\(errors)")
      #expect(output == (isAdmitted ? ["hello"] : []))
      if isAdmitted {
        _ = try await backend.process.output.first("the headers") { $0.contains("headers") }
      } else {
        #expect(!backend.process.output.lines.contains { $0.contains("headers") })
      }
    }
  }

  @Test("E-002 A client without a certificate is refused, and devices are admitted")
  func nothing() async throws {
    try await serving { gate, _ in
      let visitor = try Visitor(gate)
      let refused = try await visitor.refusal()
      #expect(refused.status == 401)
      #expect(refused.headers.first("X-Attest-Error") == "no_credentials")
      let device = try await visitor.registeredDevice()
      try await expectEcho(over: visitor.open(device.headers(over: await visitor.challenge())))
    }
  }

  @Test("The debug path does not bypass App Attest: bad assertion headers with a good certificate are refused")
  func fallThrough() async throws {
    try await serving { gate, backend in
      let folder = gate.folder + "/config/client-ca"
      let debugBuild = try Visitor(gate, certificate: folder + "/client.crt", key: folder + "/client.key")
      let otherDevice = try TestDevice()
      let good = try otherDevice.headers(over: await debugBuild.challenge())
      for bad in [good, good.without(HeaderFields.nonceName), HeaderFields().with(HeaderFields.nonceName, "x")] {
        let refused = try await debugBuild.refusal(of: bad)
        #expect([400, 401].contains(refused.status))
      }
      #expect(!backend.process.output.lines.contains { $0.contains("headers") })
      // The certificate was valid in all attempts.
      try await expectEcho(over: debugBuild.open())
    }
  }

  @Test("A reload that replaces the authority closes the sockets of its certificates, with 3003, and no other")
  func removedAuthority() async throws {
    try await serving { gate, _ in
      let folder = gate.folder + "/config/client-ca"
      let debugBuild = try Visitor(gate, certificate: folder + "/client.crt", key: folder + "/client.key")
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let (ofCertificate, ofDevice) = (
        try await debugBuild.open(), try await visitor.open(device.headers(over: await visitor.challenge()))
      )
      try await expectEcho(over: ofCertificate)
      try FileManager.default.removeItem(atPath: folder + "/ca.pem")
      try FileManager.default.copyItem(atPath: gate.certificateAuthority, toPath: folder + "/ca.pem")
      kill(gate.process.id, SIGHUP)
      guard case .ended(let ending) = try await ofCertificate.receive() else {
        Issue.record("the socket was not closed")
        return
      }
      #expect(ending.code == 3003)
      try await expectEcho(over: ofDevice)
    }
  }

  @Test("A certificate that `ca revoke` revokes loses its socket, with 3003, and is refused; others stay")
  func revoked() async throws {
    let backend = try await EchoBackend()
    try await Places.withTemporaryFolder { folder in
      func ca(_ arguments: String...) async throws {
        let (exit, _, errors) = try await ChildProcess.run(
          Places.product("sallyport"), ["ca"] + arguments + ["--folder", folder + "/ca"], environment: .gateless)
        #expect(exit == .code(0), "\(errors)")
      }
      try await ca("init")
      for name in ["alice", "bob"] { try await ca("issue", name) }
      try await ca("revoke")
      let gate = try await RunningGate(
        GateConfiguration(upstream: backend.upstream, clientAuthority: "ca/ca.pem", revocationList: "ca/crl.pem"),
        in: folder)
      defer { gate.process.kill() }
      func visitor(_ name: String) throws -> Visitor {
        try Visitor(gate, certificate: "\(folder)/ca/\(name).crt", key: "\(folder)/ca/\(name).key")
      }
      let (ofAlice, ofBob) = (try await visitor("alice").open(), try await visitor("bob").open())
      try await expectEcho(over: ofAlice)
      try await ca("revoke", "alice")
      kill(gate.process.id, SIGHUP)
      #expect(try await ofAlice.receive().closeCode == 3003)
      await #expect(throws: ClientError.self) { _ = try await visitor("alice").open() }
      try await expectEcho(over: ofBob)
      try await expectEcho(over: visitor("bob").open())
      // A list counts also while a renewal of the gate's own certificate is half done.
      try FileManager.default.removeItem(atPath: folder + "/server.key")
      try FileManager.default.copyItem(atPath: folder + "/ca/bob.key", toPath: folder + "/server.key")
      try await ca("revoke", "bob")
      kill(gate.process.id, SIGHUP)
      #expect(try await ofBob.receive().closeCode == 3003)
      await #expect(throws: ClientError.self) { _ = try await visitor("bob").open() }
      let visitor = try Visitor(gate)
      #expect(try await visitor.send("GET", "/attest/challenge").status == 200)
    }
  }

  @Test("The debug path is off unless it is configured: the guide's certificate does not admit a client")
  func off() async throws {
    try await Places.withTemporaryFolder { folder in
      try await GuideCommands.makeClientCertificate(in: folder)
      let gate = try await RunningGate(in: folder)
      defer { gate.process.kill() }
      let certificates = folder + "/config/client-ca"
      let visitor = try Visitor(gate, certificate: certificates + "/client.crt", key: certificates + "/client.key")
      let spoof = HeaderFields().with("X-SSL-Client-Verify", "SUCCESS").with("X-Client-Cert", "MIIB")
      for headers in [HeaderFields(), spoof] {
        #expect(try await visitor.refusal(of: headers).headers.first("X-Attest-Error") == "no_credentials")
      }
    }
  }

  @Test("A gate does not start if the authority of the debug path cannot be loaded", arguments: BadAuthority.allCases)
  func badAuthority(bad: BadAuthority) async throws {
    try await Places.withTemporaryFolder { folder in
      try AuthorityFolder(path: folder).save(RunningGate.authority.get())
      try bad.make(at: folder + "/client-ca.pem")
      try GateConfiguration(clientAuthority: "client-ca.pem").yaml(in: folder)
        .write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"], environment: .gateless, in: folder,
        within: .seconds(20))
      #expect(exit == .code(78))
      #expect(errors.contains { $0.contains("client-ca.pem") }, "\(errors)")
    }
  }

  enum BadAuthority: CaseIterable {
    case absent
    case empty
    case folder
    case noCertificate
    case cutOff

    func make(at path: String) throws {
      switch self {
      case .absent: return
      case .empty: try "".write(toFile: path, atomically: true, encoding: .utf8)
      case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      case .noCertificate: try "not a certificate\n".write(toFile: path, atomically: true, encoding: .utf8)
      case .cutOff:
        let pem = try RunningGate.authority.get().tlsAuthority.certificate.pem
        try String(pem.prefix(pem.count / 2)).write(toFile: path, atomically: true, encoding: .utf8)
      }
    }
  }
}

extension ClientWebSocket.Event {
  /// The code of the Close frame, if this is the end; `nil` for a message.
  fileprivate var closeCode: UInt16? { if case .ended(let ending) = self { ending.code } else { nil } }
}
