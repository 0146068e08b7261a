import ByteCoding
import COpenSSL
import Cryptography
import Foundation
import Glibc
import SimulatedDevice
import Locking
import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// A certificate authority on disk, removed after the test.
final class TLSFolder {
  let folder: AuthorityFolder
  private let path: String

  init() throws {
    var template = Array("\(Places.temporary)sallyport-tls-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw ScriptedSocket.Failure(description: "mkdtemp: \(errno)") }
    path = String(cString: made)
    folder = AuthorityFolder(path: path)
    _ = try folder.loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
  }

  deinit {
    for name in entries { unlink("\(path)/\(name)") }
    rmdir(path)
  }

  private var entries: [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names.filter { $0 != "." && $0 != ".." }
  }

  func server() throws -> ServerTLS {
    try ServerTLS(.init(certificateFile: folder.serverCertificatePath, keyFile: folder.serverKeyPath))
  }

  func client() throws -> ClientTLS { try ClientTLS(authorityFile: folder.tlsAuthorityPath) }
}

/// A TLS client or server that decides when its bytes are sent.
final class RawTLS {
  let socket: ScriptedSocket
  private var state = SocketState()
  private let bio = BufferBIO()
  private let plain = PlainBuffer()
  /// The settings, which the stream needs.
  private let tls: AnyObject

  /// Creates the server's side of a connection.
  init(accepted socket: ScriptedSocket, _ tls: ServerTLS) {
    self.socket = socket
    self.tls = tls
    state.fd = dup(socket.fd)
    state.tls = tls.makeStream(in: bio)
  }

  init(_ socket: ScriptedSocket, _ tls: ClientTLS, newestVersion: Int32 = TLS1_3_VERSION) throws {
    self.socket = socket
    self.tls = tls
    state.fd = dup(socket.fd)
    state.tls = tls.makeStream(in: bio, verifying: "localhost")
    SSL_ctrl(state.tls, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(newestVersion), nil)
  }

  deinit {
    state.close()
    bio.deallocate()
    plain.deallocate()
  }

  /// Whether written data is held back in the kernel. Setting it to `false`, or closing the socket, sends the data.
  var holds = false {
    didSet { Socket.set(TCP_CORK, level: Int32(IPPROTO_TCP), to: holds ? 1 : 0, on: socket.fd) }
  }

  /// Performs the handshake.
  ///
  /// - Parameter holdingFlight: Whether the last flight is held back until more data is written.
  func handshake(holdingFlight: Bool = false) throws {
    state.startHandshake(through: bio.buffers)
    holds = holdingFlight
    while !state.isHandshakeDone {
      let reception = state.receive(into: plain.start, through: bio.buffers)
      if reception.ended { throw ScriptedSocket.Failure(description: state.failure ?? "ended") }
    }
  }

  /// Whether the server has sent close_notify.
  var receivedCloseNotify: Bool { state.endedInOrder }

  func send(_ bytes: [UInt8]) { bytes.withUnsafeBytes { state.send($0, through: bio.buffers) } }
  func sendEnd() { state.sendEnd(through: bio.buffers) }

  /// Updates the sending keys (RFC 8446 section 4.6.3).
  func updateKey() throws {
    guard let tls = state.tls, SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 else {
      throw ScriptedSocket.Failure(description: "no key update")
    }
    state.startHandshake(through: bio.buffers)
  }

  /// Begins another handshake of TLS 1.2: sends the first record of its ClientHello, and no other.
  func beginRenegotiation() throws {
    guard let tls = state.tls else { throw ScriptedSocket.Failure(description: "no TLS") }
    // SSL_OP_NO_RENEGOTIATION, a macro with an argument.
    SSL_clear_options(tls, 1 << 30)
    // More than a record of the smallest size.
    SSL_set_cipher_list(tls, "ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    _ = sallyport_SSL_set_server_name(tls, Array(repeating: "server", count: 35).joined(separator: "."))
    SSL_ctrl(tls, SSL_CTRL_SET_MAX_SEND_FRAGMENT, 512, nil)
    bio.buffers.pointee.incomingStart = 0
    bio.buffers.pointee.incomingEnd = 0
    guard SSL_renegotiate(tls) == 1 else { throw ScriptedSocket.Failure(description: "no renegotiation") }
    SSL_do_handshake(tls)
    let sent = UnsafeRawBufferPointer(
      start: bio.buffers.pointee.outgoing, count: bio.buffers.pointee.outgoingCount)
    let length = sent.count > 5 ? 5 + (Int(sent[3]) << 8 | Int(sent[4])) : 0
    guard length > 0, sent.count > length else {
      throw ScriptedSocket.Failure(description: "a ClientHello of \(sent.count) bytes in one record")
    }
    try socket.send(Array(sent.prefix(length)))
    bio.buffers.pointee.outgoingCount = 0
  }

  func read() throws -> [UInt8]? {
    let reception = state.receive(into: plain.start, through: bio.buffers)
    if let failure = state.failure { throw ScriptedSocket.Failure(description: failure) }
    if reception.count == 0 && reception.ended { return nil }
    return Array(UnsafeRawBufferPointer(start: plain.start, count: reception.count))
  }

  func readToEnd() throws -> [UInt8] {
    var bytes: [UInt8] = []
    while let more = try read() { bytes += more }
    return bytes
  }

  func readHead() throws -> String {
    var bytes: [UInt8] = []
    while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      guard let more = try read() else { break }
      bytes += more
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension EngineTests {
  @Suite("TLS", .timeLimit(.minutes(10)))
  struct TLSTests {
    private func gate(
      _ files: TLSFolder, _ listener: RawListener, limits: SessionLimits = SessionLimits(),
      report: @escaping @Sendable (EngineEvent) -> Void = { _ in }
    ) throws -> TestGate {
      try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), limits: limits, tls: files.server(),
        report: report)
    }

    @Test("Many concurrent connections each get their own bytes")
    func interleaved() async throws {
      let files = try TLSFolder()
      let gate = try gate(files, try RawListener())
      let port = gate.engine.address.port
      let tls = try files.client()
      let engine = try ClientEngine()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<40 {
          group.addTask {
            let connection = try await engine.connect(host: "127.0.0.1", port: port, tls: tls)
            for round in 0..<5 {
              let body = [UInt8](repeating: 1, count: index * 700)
              let response = try await connection.send(
                "POST", "/\(index)/\(round)", headers: TestGate.host, body: body)
              #expect(response.body == Array("POST /\(index)/\(round) \(body.count)".utf8))
            }
          }
        }
        try await group.waitForAll()
      }
    }

    @Test("A client that sends its request and close_notify in the last flight of the handshake is answered")
    func oneFlight() throws {
      let files = try TLSFolder()
      let failures = LockedValue<[EngineEvent]>([])
      let gate = try gate(files, try RawListener()) { event in
        if case .handshakeCompleted = event { return }
        failures.withLock { $0.append(event) }
      }
      let client = try RawTLS(try gate.connect(), try files.client())
      try client.handshake(holdingFlight: true)
      client.send(Array("GET /all HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      client.sendEnd()
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("GET /all 0"))
      #expect(failures.withLock { $0 } == [])
    }

    @Test("A client that sends unlimited key updates is closed, in one flight or in many", arguments: [true, false])
    func keyUpdateFlood(isOneFlight: Bool) throws {
      let files = try TLSFolder()
      let gate = try gate(files, try RawListener())
      let client = try RawTLS(try gate.connect(), try files.client())
      try client.handshake()
      client.holds = isOneFlight
      for _ in 0..<33 { try client.updateKey() }
      client.holds = false
      client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect((try? client.readHead()) ?? "" == "")
    }

    @Test("A client of TLS 1.2 that begins to renegotiate is closed before its ClientHello is complete")
    func renegotiation() throws {
      let files = try TLSFolder()
      let listener = try RawListener()
      var limits = EngineLimits()
      limits.keepAliveTimeout = .seconds(3600)
      let gate = try TestGate(
        upstream: .webSocket(host: "127.0.0.1", port: listener.port), engineLimits: limits, tls: files.server())
      let client = try RawTLS(try gate.connect(), try files.client(), newestVersion: TLS1_2_VERSION)
      try client.handshake()
      client.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect(try client.read()?.starts(with: "HTTP/1.1 200 ".utf8) == true)
      try client.beginRenegotiation()
      // Ends, in whatever way.
      _ = try? client.readToEnd()
      // Also instead of a request.
      let second = try RawTLS(try gate.connect(), try files.client(), newestVersion: TLS1_2_VERSION)
      try second.handshake()
      try second.beginRenegotiation()
      _ = try? second.readToEnd()
    }

    @Test("No compressed certificate is accepted or sent")
    func certificateCompression() throws {
      let options = try TLSFolder().server().withContext(SSL_CTX_get_options)
      #expect(options & sallyport_no_certificate_compression() == sallyport_no_certificate_compression())
    }

    @Test("A client that sends data may update its keys without limit")
    func keyUpdates() throws {
      let files = try TLSFolder()
      let gate = try gate(files, try RawListener())
      let client = try RawTLS(try gate.connect(), try files.client())
      try client.handshake()
      for round in 0..<40 {
        try client.updateKey()
        for part in ["a", "b"] {
          client.send(Array("GET /\(round)/\(part) HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
          let body = "GET /\(round)/\(part) 0"
          var answer = ""
          while !answer.hasSuffix(body) {
            let more = try #require(try client.read())
            answer += String(decoding: more, as: UTF8.self)
          }
        }
      }
    }

    @Test("A message that is too long and the close_notify in one flight close a half-closed session once")
    func tooBigAndEnd() async throws {
      let files = try TLSFolder()
      let listener = try RawListener()
      let gate = try gate(files, listener, limits: SessionLimits(maxMessage: 10))
      let client = try RawTLS(try gate.connect(), try files.client())
      try client.handshake()
      client.send(Array(TestGate.upgrade().utf8))
      let backend = try listener.accept()
      _ = try backend.readHead()
      try backend.send(TestGate.switching)
      #expect(try client.readHead().hasPrefix("HTTP/1.1 101 "))
      backend.sendEnd()
      #expect(try client.read()?.first == 0x88)
      client.holds = true
      client.send(FrameTrackerTests.frame(2, Array(repeating: 1, count: 11), mask: FrameTrackerTests.mask))
      client.sendEnd()
      guard case .lost(.upstream, _) = await gate.record.next().end else {
        Issue.record("not lost by the upstream")
        return
      }
      #expect(await gate.engine.drain(timeout: .seconds(30)) == 0)
    }

    @Test("An upstream with TLS is verified and then relays a session like any other", arguments: [true, false])
    func secureUpstream(isTrusted: Bool) throws {
      let files = try TLSFolder()
      let listener = try RawListener()
      let inner = try gate(files, listener)
      let outer = try TestGate(
        upstream: .secureWebSocket(
          host: "127.0.0.1", port: inner.engine.address.port,
          tls: UpstreamTLS(
            caFile: files.folder.tlsAuthorityPath, serverName: isTrusted ? "localhost" : "elsewhere.example")))
      guard isTrusted else {
        let client = try outer.connect()
        try client.send(TestGate.upgrade())
        let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 502 ") && answer.contains("certificate verify failed"))
        return
      }
      let (client, backend) = try outer.open(through: listener)
      let up = FrameTrackerTests.frame(2, Array(repeating: 5, count: 200_000), mask: FrameTrackerTests.mask)
      let sender = Aside { try client.send(up) }
      #expect(try backend.read(up.count) == up)
      try backend.send(FrameTrackerTests.frame(8, [0x03, 0xE8]))
      backend.sendEnd()
      #expect(try client.readToEnd() == FrameTrackerTests.frame(8, [0x03, 0xE8]))
      _ = sender
    }

    @Test(
      "A host name only in the subject's common name does not match", arguments: [true, false])
    func commonName(hasAlternativeName: Bool) async throws {
      let files = try TLSFolder()
      let authority = try files.folder.load()
      let key = try ECPrivateKey(.p256)
      var template = CertificateTemplate(
        subject: DistinguishedName(.commonName("localhost")), subjectPublicKeyInfo: key.spki,
        notBefore: authority.server.certificate.notBefore, notAfter: authority.server.certificate.notAfter)
      if hasAlternativeName { template.extensions = [.subjectAlternativeNames(dns: ["localhost"], addresses: [])] }
      let certificate = try template.signed(by: authority.tlsAuthority.certificate, key: authority.tlsAuthority.key)
      try Data(certificate.pem.utf8).write(to: URL(fileURLWithPath: files.folder.serverCertificatePath))
      try Data(key.pkcs8PEM.utf8).write(to: URL(fileURLWithPath: files.folder.serverKeyPath))
      let gate = try gate(files, try RawListener())
      let (engine, port, tls) = (try ClientEngine(), gate.engine.address.port, try files.client())
      let connect = { () async throws(ClientError) in
        _ = try await engine.connect(host: "127.0.0.1", port: port, tls: tls, verifying: "localhost")
      }
      guard !hasAlternativeName else { return try await connect() }
      let fault = await #expect(throws: ClientError.self) { try await connect() }
      #expect(fault?.description.contains("hostname mismatch") == true, "\(String(describing: fault))")
    }

    @Test("An upgraded connection relays a large message in both directions")
    func large() async throws {
      // The period of 251 bytes is prime, so a chunk in the wrong place is detected.
      let payload = Array(repeatElement(Array(UInt8(0)..<251), count: 6000).joined())
      let files = try TLSFolder()
      let listener = try RawListener()
      let gate = try gate(files, listener)
      let engine = try ClientEngine()
      let connection = try await engine.connect(
        host: "127.0.0.1", port: gate.engine.address.port, tls: try files.client())
      let backend = Aside {
        let backend = try listener.accept()
        try backend.acceptUpgrade()
        let frame = try backend.read(14 + payload.count)
        try backend.send(FrameTrackerTests.frame(2, payload))
        return frame.count
      }
      let socket = try await connection.upgrade("/", host: "localhost")
      try await socket.send(.binary(payload))
      #expect(try await socket.receive() == .message(.binary(payload)))
      #expect(try await backend.value == 14 + payload.count)
    }
  }
}
