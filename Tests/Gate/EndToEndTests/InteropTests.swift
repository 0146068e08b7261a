import ByteCoding
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Clients and backends that were not written for this gate.
@Suite("Interoperability", .serialized, .timeLimit(.minutes(10)))
struct InteropTests {
  /// Returns the lines that `attest headers` prints for a device whose state is in the gate's folder: three, or one with
  /// the option `--subprotocol`.
  private func headers(for gate: RunningGate, _ options: String...) async throws -> [String] {
    try FileManager.default.createDirectory(atPath: gate.folder + "/device", withIntermediateDirectories: true)
    var environment = [String: String?].gateless
    environment["XDG_STATE_HOME"] = gate.folder + "/device"
    let (exit, lines, errors) = try await ChildProcess.run(
      Places.product("attest"), ["headers", gate.url, "--authority", gate.folder] + options,
      environment: environment,
      within: .seconds(20))
    guard exit == .code(0), lines.count == (options.isEmpty ? 3 : 1) else {
      throw ProgramFailed(name: "attest headers", errors: errors)
    }
    return lines
  }

  private func upgrade(_ lines: [String], host: String = "localhost") -> [UInt8] {
    let head =
      [
        "GET /chat?room=1 HTTP/1.1", "Host: \(host)", "Connection: keep-alive, Upgrade", "Upgrade: WebSocket",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ] + lines
    return Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  @Test("Python's websockets work as client and backend, over both versions of TLS", arguments: ["1.2", "1.3"])
  func websockets(tls: String) async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let credentials = try await headers(for: gate)
      // 70,000 characters need a frame with a long length and more than one read.
      let messages = ["hello", "grüß dich 👋", String(repeating: "x", count: 70_000)]
      let dial = [gate.url, "--ca", gate.certificateAuthority, "--tls", tls]
      let events = try await PythonProgram.dial.run(dial + messages, input: credentials)
      #expect(events.first == ["opened": .text("TLSv" + tls)])
      #expect(events.dropFirst().map { $0["received"]?.text } == messages)
      let seen = try await backend.firstHeaders()
      #expect(seen["x-attest-method"] == "app-attest")
      #expect(seen["x-attest-app"] == GateConfiguration.appID)
      #expect(seen["x-attest-key-id"]?.count == 43)
      // websockets closes with 1000, and the backend receives the same code.
      _ = try await backend.process.output.first("the end") { $0 == #"{"closed": 1000}"# }
      #expect(try await PythonProgram.dial.run(dial, input: credentials) == [["refused": .number(401)]])
    }
  }

  @Test(
    "A client that cannot set header fields opens a socket by a subprotocol, or by the query", arguments: [false, true])
  func carriedAssertion(isTCP: Bool) async throws {
    let backend = try await EchoBackend(isTCP ? .tcp : .webSocket)
    var configuration = GateConfiguration(upstream: backend.upstream)
    configuration.routeExtras = ["credentials: [subprotocol, query]"]
    try await RunningGate.serving(configuration) { gate in
      func token() async throws -> String {
        let lines = try await headers(for: gate, "--subprotocol")
        return try #require(lines.first)
      }
      let dial = [gate.url, "--ca", gate.certificateAuthority]
      for others in [[], ["sallyport.v1"]] as [[String]] {
        let token = try await token()
        let offers = ([token] + others).flatMap { ["--offer", $0] }
        let events = try await PythonProgram.dial.run(dial + offers + ["hello"])
        #expect(events.dropFirst() == [["chosen": .text(others.first ?? token)], ["received": .text("hello")]])
        #expect(try await PythonProgram.dial.run(dial + offers) == [["refused": .number(401)]])
      }
      let query = try await token().replacing("sallyport.v1.", with: "?sallyport.v1=")
      let events = try await PythonProgram.dial.run([gate.url + query] + dial.dropFirst() + ["hello"])
      #expect(events.dropFirst() == [["received": .text("hello")]])
      #expect(try await PythonProgram.dial.run(dial) == [["refused": .number(401)]])
      if !isTCP { #expect(try await backend.firstHeaders()["sec-websocket-protocol"] == nil) }
    }
  }

  @Test("curl works for every request of an app", arguments: ["1.2", "1.3"])
  func curl(tls: String) async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let page = "https://localhost:\(gate.port)"
      let common = [
        "--silent", "--show-error", "--cacert", gate.certificateAuthority, "--tlsv\(tls)", "--tls-max", tls,
        "--max-time", "10",
      ]
      func curl(_ arguments: [String], input: String = "") async throws -> [String] {
        try await ChildProcess.run(
          Places.tool("curl"), common + arguments, input: Array(input.utf8), within: .seconds(20)
        ).output.map { $0.replacing("\r", with: "") }
      }
      func challenge() async throws -> String {
        let answer = try await curl([page + "/attest/challenge"]).joined()
        let object = try JSONDecoder().decode([String: String].self, from: Data(answer.utf8))
        return try #require(object["nonce"])
      }
      let device = try TestDevice()
      let nonce = try await challenge()
      let body = JSONText.object([
        "keyId": device.keyID, "attestation": Base64.encode(try device.attestation(over: nonce)), "nonce": nonce,
      ])
      let json = ["--json", "@-", "--write-out", "\n%{http_code}", page + "/attest/register"]
      #expect(try await curl(json, input: body).last == "200")

      let credentials = try device.headers(over: await challenge())
      let fields =
        credentials.lines + [
          "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
      let upgrade = ["--http1.1", "--include", "--no-buffer", "--max-time", "3"] + fields.flatMap { ["--header", $0] }
      let head = try await curl(upgrade + [page + "/"])
      #expect(head.first == "HTTP/1.1 101 Switching Protocols")
      #expect(head.contains { $0.lowercased() == "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=" })
      let replay = try await curl(upgrade + [page + "/"])
      #expect(replay.first?.hasPrefix("HTTP/1.1 401") == true)
      #expect(replay.last == "Invalid or expired nonce")
    }
  }

  @Test("openssl s_client works with a typed request", arguments: ["-tls1_2", "-tls1_3"])
  func typed(version: String) async throws {
    let witness = try await Witness()
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let credentials = try await headers(for: gate)
      let client = RawClient(gate, [version])
      let (process, head) = try await client.open(upgrade(credentials))
      defer { process.kill() }
      #expect(head.first == "HTTP/1.1 101 Switching Protocols")
      #expect(head.contains { $0.hasSuffix("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") })
      #expect(try await witness.head(1).first == "GET /chat?room=1 HTTP/1.1")
    }
  }

  @Test("IPv4 and IPv6 clients connect to one address")
  func families() async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(address: "::", upstream: backend.upstream)) { gate in
      for host in ["127.0.0.1", "::1"] {
        let (process, head) = try await RawClient(gate).open(upgrade(try await headers(for: gate)), at: host)
        defer { process.kill() }
        #expect(head.first == "HTTP/1.1 101 Switching Protocols", "\(host)")
      }
    }
  }

  @Test(
    "TLS versions before 1.2 are refused, and 1.2 too if the minimum is 1.3",
    arguments: [
      ("1.2", "-tls1_1", false), ("1.2", "-tls1_2", true), ("1.3", "-tls1_2", false), ("1.3", "-tls1_3", true),
    ])
  func versions(least: String, version: String, isSpoken: Bool) async throws {
    try await RunningGate.serving(GateConfiguration(leastTLS: least)) { gate in
      // Security level 0, because the client itself would refuse otherwise.
      let client = RawClient(gate, [version, "-cipher", "DEFAULT@SECLEVEL=0"])
      let request = Array("GET /attest/challenge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
      if isSpoken {
        let answer = try await client.exchange(request)
        #expect(answer.response.status == 200)
      } else {
        await #expect(throws: NoAnswer.self) { try await client.exchange(request) }
      }
    }
  }

  @Test("A backend with TLS works, and the gate verifies its certificate")
  func secureUpstream() async throws {
    try await Places.withTemporaryFolder { folder in
      try AuthorityFolder(path: folder).save(RunningGate.authority.get())
      let backend = try await EchoBackend(
        .secureWebSocket(certificate: folder + "/server.pem", key: folder + "/server.key"))
      let trusted = ["upstream_tls: { ca_file: tls-ca.pem }"]
      try await expectRelay(GateConfiguration(upstream: backend.upstream, routeExtras: trusted))

      let wrong: [(what: String, extras: [String])] = [
        ("the system's authorities", []),
        ("another authority", ["upstream_tls: { ca_file: receipt-root.pem }"]),
        ("another name", ["upstream_tls: { ca_file: tls-ca.pem, server_name: elsewhere.example }"]),
      ]
      for (what, extras) in wrong {
        try await RunningGate.serving(GateConfiguration(upstream: backend.upstream, routeExtras: extras)) { gate in
          let visitor = try Visitor(gate)
          let device = try await visitor.registeredDevice()
          let refused = try await visitor.refusal(of: device.headers(over: await visitor.challenge()))
          #expect(refused.headers.first("X-Attest-Error") == "upstream_unavailable", "\(what)")
        }
      }
    }
  }

  @Test("A backend at a Unix socket works")
  func unixUpstream() async throws {
    try await Places.withTemporaryFolder { folder in
      let backend = try await EchoBackend(.unix(path: folder + "/backend.sock"))
      try await expectRelay(GateConfiguration(upstream: backend.upstream))
    }
  }

  @Test("A backend that speaks plain TCP receives text and binary, and both return as binary")
  func byteUpstream() async throws {
    let backend = try await EchoBackend(.tcp)
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let socket = try await visitor.open(device.headers(over: await visitor.challenge()))
      for message in [WebSocketMessage.text("text"), .binary([0, 255, 13, 10])] {
        let bytes: [UInt8] = if case .text(let text) = message { Array(text.utf8) } else { [0, 255, 13, 10] }
        try await socket.send(message)
        var answer: [UInt8] = []
        while answer.count < bytes.count {
          guard case .message(.binary(let part)) = try await socket.receive() else { break }
          answer += part
        }
        #expect(answer == bytes)
      }
    }
  }

  private func expectRelay(_ configuration: GateConfiguration) async throws {
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let socket = try await visitor.open(device.headers(over: await visitor.challenge()))
      try await expectEcho(over: socket)
      try await expectEcho(over: socket, String(repeating: "y", count: 100_000))
      await socket.close()
      let event = try await socket.receive()
      guard case .ended(let ending) = event else {
        Issue.record("\(event)")
        return
      }
      #expect(ending.code == 1000)
    }
  }
}
