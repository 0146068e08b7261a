import COpenSSL
import Glibc
import SimulatedDevice

@testable import TransportEngine

extension FuzzTarget {
  /// The first byte decides where the bytes are cut.
  static let clientHello = FuzzTarget(
    name: "client-hello", longest: 8192,
    words: [
      "\u{16}\u{3}\u{1}", "\u{16}\u{3}\u{3}", "\u{14}\u{3}\u{3}\u{0}\u{1}\u{1}", "\u{15}\u{3}\u{1}\u{0}\u{2}\u{1}",
    ],
    seeds: { try ClientHelloInvariants.seeds() }, accepts: ClientHelloInvariants.check)
}

/// A server's TLS connection, up to the point where a client needs keys:
/// - The result does not depend on how the bytes are cut.
/// - Memory is bounded.
/// - No handshake completes.
/// - No error is left for the next connection.
/// - OpenSSL never sees an HTTP request without TLS.
enum ClientHelloInvariants {
  /// The maximum number of bytes that OpenSSL may allocate for a connection before its answer: record buffers in both
  /// directions, a message buffer, and its own state.
  private static let limit = 96 << 10
  /// The maximum number of bytes that OpenSSL may allocate for all connections together, in addition to `first`.
  private static let commonLimit = 1 << 20

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let pattern = input.first, input.count > 1 else { return false }
    let bytes = Array(input.dropFirst())
    let whole = try run([bytes])
    let pieces = try run(Array(Pieces(of: bytes, pattern: pattern)))
    try require(pieces == whole, "pieces give the same result as the whole", "\(pieces) and \(whole)")
    return whole.isAnswered && whole.failure == nil
  }

  /// The result of feeding the bytes to a connection.
  private struct Outcome: Equatable {
    var failure: String?
    var hasEnded = false
    var isPlainHTTP = false
    var isAnswered = false
    /// The headers of the answer's record and message. The bytes after them are random.
    var answer: [UInt8] = []
  }

  private static func run(_ pieces: [[UInt8]]) throws(InvariantViolation) -> Outcome {
    _ = (server, first)
    let before = OpenSSLMemory.count
    var connection = Connection { server.makeStream(in: $0) }
    var hello = ClientHelloGuard()
    for piece in pieces where !connection.state.hasEnded && hello.stage != .plainHTTP {
      connection.put(piece)
      let reception = connection.state.receive(greetedBy: &hello, into: plain.start, through: connection.bio.buffers)
      try require(ERR_peek_error() == 0, "no error is left for the next connection")
      let isPlain = hello.stage == .plainHTTP
      try require((connection.state.tls == nil) == isPlain, "HTTP without TLS ends TLS, and nothing else does")
      try require(
        reception.count == 0 && (isPlain || !connection.state.isHandshakeDone), "no handshake completes without keys")
      let pinned = OpenSSLMemory.count - before
      try require(hello.stage == .answered || pinned <= limit, "memory before the answer is bounded", "\(pinned) bytes")
    }
    let state = connection.state
    let outcome = Outcome(
      failure: state.failure, hasEnded: state.hasEnded, isPlainHTTP: hello.stage == .plainHTTP,
      isAnswered: hello.stage == .answered, answer: Array(connection.take().prefix(9)))
    connection.close()
    try require(OpenSSLMemory.count - first <= commonLimit, "a closed connection frees its memory")
    return outcome
  }

  /// The gate's end of a connection. The target controls the other end.
  private struct Connection {
    let bio = BufferBIO()
    var state = SocketState()
    private let peer: Int32

    init(_ makeStream: (BufferBIO) -> OpaquePointer?) {
      var ends: [Int32] = [-1, -1]
      let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
      guard socketpair(AF_UNIX, kind, 0, &ends) == 0, let tls = makeStream(bio) else {
        Standard.error("error: cannot open a connection: errno \(errno)")
        exit(70)
      }
      (state.fd, peer, state.tls) = (ends[0], ends[1], tls)
    }

    /// Sends bytes that always fit into the socket buffer.
    func put(_ bytes: [UInt8]) {
      _ = send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Returns the bytes that the connection has sent.
    func take() -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 32 << 10)
      let count = recv(peer, &bytes, bytes.count, 0)
      return Array(bytes.prefix(max(0, count)))
    }

    mutating func close() {
      state.close()
      bio.deallocate()
      Glibc.close(peer)
    }
  }

  // Only one input at a time uses the buffer, on one thread.
  nonisolated(unsafe) private static let plain = PlainBuffer()
  private static let authority = Fixtures.shared.authorityFolder

  /// Requests client certificates, which TLS 1.2 sends in clear text.
  private static let server: ServerTLS = {
    do {
      return try ServerTLS(
        .init(certificateFile: authority.serverCertificatePath, keyFile: authority.serverKeyPath),
        clientAuthorityFile: authority.tlsAuthorityPath)
    } catch {
      Standard.error("error: cannot make the server: \(error)")
      exit(70)
    }
  }()

  /// The number of bytes that OpenSSL had allocated before the first input.
  private static let first = OpenSSLMemory.count

  static func seeds() throws -> [[UInt8]] {
    var streams: [[UInt8]] = [
      // Announces 131,392 bytes.
      [22, 3, 1, 0, 4, 1, 2, 1, 0x40], [22, 3, 1, 0, 3, 1, 0, 1],
      [22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 2, 2, 1, 22, 3, 1, 0, 1, 0x40], Array("GET / HTTP/1.1\r\n".utf8),
      Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), Array("PO".utf8), [0x80, 0x2E, 1],
    ]
    for groups in ["X25519:P-256", "P-384", "P-521", "X448:X25519"] {
      for isOld in [false, true] {
        let flights = try flights(groups: groups, isOld: isOld)
        for count in flights.indices { streams.append(Array(flights[...count].joined())) }
      }
    }
    return streams.flatMap { [[0x55] + $0, [0] + $0] }
  }

  /// Returns the flights that a client sends in a handshake.
  private static func flights(groups: String, isOld: Bool) throws -> [[UInt8]] {
    let settings = try ClientTLS(
      authorityFile: authority.tlsAuthorityPath, certificateFile: authority.serverCertificatePath,
      keyFile: authority.serverKeyPath)
    _ = settings.withContext { sallyport_SSL_CTX_set1_groups_list($0, groups) }
    if isOld {
      _ = settings.withContext { SSL_CTX_ctrl($0, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_2_VERSION), nil) }
    }
    var client = Connection { settings.makeStream(in: $0, verifying: "localhost") }
    var server = Connection { Self.server.makeStream(in: $0) }
    defer {
      client.close()
      server.close()
    }
    client.state.startHandshake(through: client.bio.buffers)
    var flights: [[UInt8]] = []
    while case let flight = client.take(), !flight.isEmpty {
      flights.append(flight)
      server.put(flight)
      _ = server.state.receive(into: plain.start, through: server.bio.buffers)
      client.put(server.take())
      _ = client.state.receive(into: plain.start, through: client.bio.buffers)
    }
    return flights
  }
}

/// The memory that OpenSSL has allocated. Read for every input, on one thread.
enum OpenSSLMemory {
  /// The number of bytes that are allocated and not freed.
  nonisolated(unsafe) private(set) static var count = 0
  /// The size of each block is stored before it, in as many bytes as keep the block aligned.
  private static let header = 16

  /// Installs the counting allocator. Call it before the first use of OpenSSL.
  static func begin() {
    let isCounted = CRYPTO_set_mem_functions(
      { size, _, _ in OpenSSLMemory.resize(nil, to: size) },
      { block, size, _, _ in OpenSSLMemory.resize(block, to: size) },
      { block, _, _ in _ = OpenSSLMemory.resize(block, to: 0) })
    guard isCounted == 1 else {
      Standard.error("error: cannot count the memory of OpenSSL")
      exit(70)
    }
  }

  /// Works like `realloc`: a size of 0 frees the block, and a failed allocation leaves it unchanged.
  private static func resize(_ block: UnsafeMutableRawPointer?, to size: Int) -> UnsafeMutableRawPointer? {
    let start = block.map { $0 - header }
    let before = start?.load(as: Int.self) ?? 0
    guard size > 0 else {
      count -= before
      free(start)
      return nil
    }
    guard let start = realloc(start, header + size) else { return nil }
    count += size - before
    start.storeBytes(of: size, as: Int.self)
    return start + header
  }
}
