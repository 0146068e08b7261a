import COpenSSL
import Glibc
import Locking
import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// Returns a ClientHello as a client sends it, in one record.
private func hello(groups: String? = nil, _ files: TLSFolder) throws -> [UInt8] {
  let listener = try RawListener()
  let client = try files.client()
  if let groups { _ = client.withContext { sallyport_SSL_CTX_set1_groups_list($0, groups) } }
  let bio = BufferBIO()
  defer { bio.deallocate() }
  var state = SocketState()
  defer { state.close() }
  let socket = try ScriptedSocket(connectingTo: listener.port)
  state.fd = dup(socket.fd)
  state.tls = client.makeStream(in: bio, verifying: "localhost")
  state.startHandshake(through: bio.buffers)
  let peer = try listener.accept()
  let header = try peer.read(5)
  return try header + peer.read(Int(header[3]) << 8 | Int(header[4]))
}

extension EngineTests {
  @Suite("ClientHello limits", .timeLimit(.minutes(5)))
  struct ClientHelloTests {
    /// The first bytes of a ClientHello that announces 131,392 bytes. OpenSSL would allocate that much.
    static let huge: [UInt8] = [22, 3, 1, 0, 4, 1, 2, 1, 0x40]
    private static let changeCipherSpec: [UInt8] = [20, 3, 3, 0, 1, 1]

    private final class Gate: Sendable {
      let gate: TestGate
      let reasons: LockedValue<[String]>
      let refusals: LockedValue<[ConnectionRefusal]>
      let unused: LockedValue<Int>
      init(_ files: TLSFolder) throws {
        let reasons = LockedValue<[String]>([])
        let refusals = LockedValue<[ConnectionRefusal]>([])
        let unused = LockedValue(0)
        (self.reasons, self.refusals, self.unused) = (reasons, refusals, unused)
        gate = try TestGate(upstream: .tcp(host: "127.0.0.1", port: 1), tls: files.server()) { event in
          if case .handshakeFailed(_, let reason, _) = event { reasons.withLock { $0.append(reason) } }
          if case .connectionRefused(let refusal, _, _) = event { refusals.withLock { $0.append(refusal) } }
          if case .connectionUnused = event { unused.withLock { $0 += 1 } }
        }
      }
    }

    struct Beginning: Sendable, CustomTestStringConvertible {
      let name: String
      let bytes: [UInt8]
      let isSecond: Bool
      let verdict: ClientHelloGuard.Verdict
      var testDescription: String { name }

      init(
        _ name: String, _ bytes: [UInt8], isSecond: Bool = false, _ verdict: ClientHelloGuard.Verdict = .sound
      ) {
        (self.name, self.bytes, self.isSecond, self.verdict) = (name, bytes, isSecond, verdict)
      }
    }

    static let beginnings = [
      Beginning("a valid ClientHello", [22, 3, 1, 2, 0, 1, 0, 1, 0xFC]),
      Beginning("the longest ClientHello", [22, 3, 1, 0x40, 0, 1, 0, 0x40, 0]),
      Beginning("the message header alone in its record", [22, 3, 1, 0, 4, 1, 0, 1, 0xFC]),
      Beginning(
        "one byte too long", [22, 3, 1, 0x40, 0, 1, 0, 0x40, 1], .fault("a ClientHello of 16385 bytes is too long")),
      Beginning("a huge ClientHello", huge, .fault("a ClientHello of 131392 bytes is too long")),
      Beginning("a first record of one byte", [22, 3, 1, 0, 1, 1, 22, 3, 1, 2, 0, 0, 1, 0xFC]),
      Beginning("a first record of three bytes", [22, 3, 1, 0, 3, 1, 0, 1, 22, 3, 1, 1, 0xFD, 0xFC]),
      Beginning(
        "four records of one byte",
        [22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 1, 0, 22, 3, 1, 0, 1, 0x40, 22, 3, 1, 0, 1, 0]),
      Beginning(
        "four records of one byte, one byte too long",
        [22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 1, 0, 22, 3, 1, 0, 1, 0x40, 22, 3, 1, 0, 1, 1],
        .fault("a ClientHello of 16385 bytes is too long")),
      Beginning(
        "a huge ClientHello in small records", [22, 3, 1, 0, 2, 1, 2, 22, 3, 1, 0, 2, 1, 0x40],
        .fault("a ClientHello of 131392 bytes is too long")),
      Beginning(
        "another message in a small record", [22, 3, 1, 0, 1, 2],
        .fault(
          "not a ClientHello but a handshake message of type 2")),
      Beginning(
        "an alert in the message header", [22, 3, 1, 0, 1, 1, 21],
        .fault(
          "not a TLS handshake record: the first byte is 21")),
      Beginning(
        "plain HTTP in the message header", [22, 3, 1, 0, 1, 1, 71],
        .fault(
          "not a TLS handshake record: the first byte is 71")),
      Beginning("an empty record", [22, 3, 1, 0, 0], .fault("an empty record in place of a ClientHello")),
      Beginning(
        "an empty record in the message header", [22, 3, 1, 0, 2, 1, 0, 22, 3, 1, 0, 0],
        .fault("an empty record in place of a ClientHello")),
      Beginning(
        "a change, a second ClientHello in small records",
        changeCipherSpec + [22, 3, 3, 0, 1, 1, 22, 3, 3, 0, 1, 0, 22, 3, 3, 0, 1, 1, 22, 3, 3, 0, 1, 0],
        isSecond: true),
      Beginning(
        "another message", [22, 3, 1, 2, 0, 11], .fault("not a ClientHello but a handshake message of type 11")),
      Beginning("an alert", [21], .fault("not a TLS handshake record: the first byte is 21")),
      Beginning("SSL 2", [0x80], .fault("not a TLS handshake record: the first byte is 128")),
      Beginning("a letter that begins no method", [90], .fault("not a TLS handshake record: the first byte is 90")),
      Beginning("plain HTTP", Array("GET ".utf8), .plainHTTP),
      Beginning("the longest method", Array("OPTIONS ".utf8), .plainHTTP),
      Beginning("an unknown method", Array("GEX".utf8), .fault("not a TLS handshake record: the first byte is 71")),
      Beginning(
        "plain HTTP in place of a second ClientHello", [71], isSecond: true,
        .fault("not a TLS handshake record: the first byte is 71")),
      Beginning("a change of cipher specs", [20], .fault("not a TLS handshake record: the first byte is 20")),
      Beginning("a second ClientHello", [22, 3, 3, 2, 0, 1, 0, 1, 0xFC], isSecond: true),
      Beginning("a change, a second ClientHello", changeCipherSpec + [22, 3, 3, 2, 0, 1, 0, 1, 0xFC], isSecond: true),
      Beginning(
        "a huge second ClientHello after a change of cipher specs", changeCipherSpec + huge, isSecond: true,
        .fault("a ClientHello of 131392 bytes is too long")),
      Beginning(
        "two changes of cipher specs", changeCipherSpec + [20], isSecond: true,
        .fault("not a TLS handshake record: the first byte is 20")),
      Beginning("a malformed change", [20, 3, 3, 0, 2], isSecond: true, .fault("a malformed change_cipher_spec")),
    ]

    @Test("A ClientHello is accepted or refused at the first byte that decides the result", arguments: beginnings)
    func verdict(_ beginning: Beginning) {
      var hello = ClientHelloGuard()
      hello.stage = beginning.isSecond ? .second : .first
      for count in 0..<beginning.bytes.count {
        let verdict = beginning.bytes[..<count].withUnsafeBytes { hello.judge($0) }
        #expect(verdict == .incomplete, "\(count) bytes")
      }
      #expect(beginning.bytes.withUnsafeBytes { hello.judge($0) } == beginning.verdict)
    }

    @Test("A ClientHello that is too long is refused before memory is allocated", arguments: [9, 1])
    func tooLong(piece: Int) throws {
      let gate = try Gate(TLSFolder())
      let client = try gate.gate.connect()
      var rest = Self.huge[...]
      while !rest.isEmpty {
        try client.send(Array(rest.prefix(piece)))
        rest = rest.dropFirst(piece)
      }
      #expect(try client.readToEnd() == [])
      #expect(gate.reasons.withLock { $0 } == ["TLS handshake: a ClientHello of 131392 bytes is too long"])
    }

    @Test(
      "A request in plain HTTP gets 400 with one sentence and the end of the stream, however its bytes arrive",
      arguments: [1, 3, 4, 1000])
    func plainHTTP(piece: Int) throws {
      let gate = try Gate(TLSFolder())
      let client = try gate.gate.connect()
      var rest = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)[...]
      while !rest.isEmpty {
        try client.send(Array(rest.prefix(piece)))
        rest = rest.dropFirst(piece)
      }
      let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"), "\(answer)")
      #expect(answer.contains("\r\nConnection: close\r\n"))
      #expect(answer.hasSuffix("\r\n\r\nthis port speaks TLS: use https:// or wss://\n"))
      #expect(gate.refusals.withLock { $0 } == [.plainHTTP])
      #expect(gate.reasons.withLock { $0 } == [])
    }

    @Test("The beginning of a method gets no answer, neither when the client ends nor when it only waits")
    func halfMethod() throws {
      let gate = try Gate(TLSFolder())
      let client = try gate.gate.connect()
      try client.send(Array("POS".utf8))
      client.sendEnd()
      #expect(try client.readToEnd() == [])
      #expect(gate.refusals.withLock { $0 } == [])
      #expect(gate.reasons.withLock(\.count) == 1)
    }

    @Test("After the answer to plain HTTP, a ClientHello on the same connection is not read")
    func helloAfterPlainHTTP() throws {
      let files = try TLSFolder()
      let gate = try Gate(files)
      let client = try gate.gate.connect()
      try client.send(Array("GET / HTTP/1.1\r\n".utf8) + hello(files))
      let answer = try client.readToEnd()
      #expect(String(decoding: answer, as: UTF8.self).hasSuffix("wss://\n"))
      #expect(answer.count < 400)
      #expect(gate.refusals.withLock { $0 } == [.plainHTTP])
    }

    @Test("A ClientHello may arrive byte by byte")
    func slowly() throws {
      let files = try TLSFolder()
      let gate = try Gate(files)
      let client = try gate.gate.connect()
      for byte in try hello(files) { try client.send([byte]) }
      let answer = try client.read(6)
      #expect(answer[0] == 22 && answer[5] == 2)
    }

    @Test("A ClientHello may arrive in several records")
    func records() throws {
      let files = try TLSFolder()
      let gate = try Gate(files)
      let client = try gate.gate.connect()
      let whole = try hello(files)
      var rest = whole.dropFirst(5)
      while !rest.isEmpty {
        let piece = rest.prefix(100)
        try client.send([22, 3, 1, 0, UInt8(piece.count)] + piece)
        rest = rest.dropFirst(100)
      }
      let answer = try client.read(6)
      #expect(answer[0] == 22 && answer[5] == 2)
    }

    @Test("The first records of a ClientHello may have 1 to 3 bytes, and arrive byte by byte", arguments: [1, 2, 3])
    func smallRecords(size: Int) throws {
      let files = try TLSFolder()
      for isSlow in [false, true] {
        let gate = try Gate(files)
        let client = try gate.gate.connect()
        let message = try hello(files).dropFirst(5)
        var records: [UInt8] = []
        for index in 0..<4 { records += [22, 3, 1, 0, UInt8(size)] + message.dropFirst(index * size).prefix(size) }
        let rest = message.dropFirst(4 * size)
        records += [22, 3, 1, UInt8(rest.count >> 8), UInt8(rest.count & 255)] + rest
        if isSlow {
          for byte in records { try client.send([byte]) }
        } else {
          try client.send(records)
        }
        let answer = try client.read(6)
        #expect(answer[0] == 22 && answer[5] == 2)
        #expect(gate.reasons.withLock { $0 } == [])
      }
    }

    @Test("A connection that closes without a byte is no failed handshake", arguments: [true, false])
    func unused(resets: Bool) throws {
      let gate = try Gate(TLSFolder())
      for _ in 0..<20 {
        let client = try gate.gate.connect()
        if resets { client.reset() } else { client.sendEnd() }
        _ = try? client.readToEnd()
      }
      // Connections are served in the order of their events, and this one comes last.
      let last = try gate.gate.connect()
      try last.send([22, 3])
      last.sendEnd()
      _ = try last.readToEnd()
      #expect(gate.reasons.withLock { $0.map { $0.hasSuffix("the client closed the connection") } } == [true])
      for _ in 0..<2000 where gate.unused.withLock(\.self) < 20 { usleep(5000) }
      #expect(gate.unused.withLock(\.self) == 20)
      #expect(gate.refusals.withLock { $0 } == [])
    }

    @Test("A client that must send another key share sends a second ClientHello and is served")
    func retried() throws {
      let files = try TLSFolder()
      let gate = try Gate(files)
      let tls = try files.client()
      // The group of the first key share is one that the gate does not support.
      _ = tls.withContext { sallyport_SSL_CTX_set1_groups_list($0, "X448:X25519") }
      let client = try RawTLS(try gate.gate.connect(), tls)
      try client.handshake()
      client.send(Array("GET /retried HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8))
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasSuffix("GET /retried 0"))
    }

    @Test(
      "A second ClientHello that is too long is refused, with or without waiting for the retry request",
      arguments: [[], changeCipherSpec], [true, false])
    func secondTooLong(front: [UInt8], isAhead: Bool) throws {
      let files = try TLSFolder()
      let gate = try Gate(files)
      let client = try gate.gate.connect()
      let first = try hello(groups: "X448:X25519", files)
      try client.send(isAhead ? first + front + Self.huge : first)
      let answer = try client.read(43)
      #expect(answer.withUnsafeBytes { ClientHelloGuard.isRetryRequest($0) })
      if !isAhead { try client.send(front + Self.huge) }
      _ = try client.readToEnd()
      #expect(gate.reasons.withLock { $0 } == ["TLS handshake: a ClientHello of 131392 bytes is too long"])
    }

    @Test("A ClientHello interrupted by the client's close_notify fails the handshake without delay")
    func brokenOff() throws {
      let gate = try Gate(TLSFolder())
      let client = try gate.gate.connect()
      let beginning: [UInt8] = [22, 3, 1, 0, 6, 1, 0, 1, 0, 3, 3]
      let warning: [UInt8] = [21, 3, 1, 0, 2, 1, 90]
      let end: [UInt8] = [21, 3, 1, 0, 2, 1, 0]
      try client.send(beginning + warning + end + end + beginning)
      _ = try? client.readToEnd()
      #expect(gate.reasons.withLock(\.count) == 1)
    }

    @Test("A warning before the second ClientHello is refused, because it would hide the length")
    func hidden() throws {
      let files = try TLSFolder()
      let gate = try Gate(files)
      let client = try gate.gate.connect()
      // A warning, which OpenSSL would read and ignore.
      try client.send(try hello(groups: "X448:X25519", files) + [21, 3, 3, 0, 2, 1, 90] + Self.huge)
      _ = try? client.readToEnd()
      #expect(
        gate.reasons.withLock { $0 } == ["TLS handshake: not a TLS handshake record: the first byte is 21"])
    }
  }
}
