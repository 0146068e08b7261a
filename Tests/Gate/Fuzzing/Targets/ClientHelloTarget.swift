import COpenSSL
import Glibc
import SimulatedDevice

@testable import TransportEngine

extension FuzzTarget {
  /// The first byte says where the bytes are cut.
  static let clientHello = FuzzTarget(
    name: "client-hello", longest: 8192,
    words: [
      "\u{16}\u{3}\u{1}", "\u{16}\u{3}\u{3}", "\u{14}\u{3}\u{3}\u{0}\u{1}\u{1}", "\u{15}\u{3}\u{1}\u{0}\u{2}\u{1}",
    ],
    seeds: { try ClientHelloLaws.seeds() }, accepts: ClientHelloLaws.check)
}

/// A server's TLS connection, up to where a client would have to know keys, comes to the same however the bytes are
/// cut, costs a bounded room, completes no handshake, and leaves nothing behind that the next connection could trip
/// over.
enum ClientHelloLaws {
  /// Bytes that OpenSSL may hold for a connection before it has answered: buffers of a record each way, one of a
  /// message, and its own state.
  private static let room = 96 << 10
  /// What it may keep for all connections together, beside what it held at first.
  private static let commonRoom = 1 << 20

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let pattern = input.first, input.count > 1 else { return false }
    let bytes = Array(input.dropFirst())
    let whole = try greet([bytes])
    let pieces = try greet(Array(Pieces(of: bytes, pattern: pattern)))
    try require(pieces == whole, "pieces make the whole", "\(pieces) and \(whole)")
    return whole.isAnswered && whole.failure == nil
  }

  /// What came of the bytes.
  private struct Greeting: Equatable {
    var failure: String?
    var hasEnded = false
    var isAnswered = false
    /// How the answer begins: the header of its record and that of its message. What follows is by chance.
    var answer: [UInt8] = []
  }

  private static func greet(_ pieces: [[UInt8]]) throws(InvariantViolation) -> Greeting {
    _ = (server, first)
    let before = OpenSSLMemory.count
    var connection = Connection { server.makeStream(in: $0) }
    var hello = ClientHelloGuard()
    for piece in pieces where !connection.link.hasEnded {
      connection.put(piece)
      let reception = connection.link.receive(greetedBy: &hello, into: plain.start, through: connection.bio.window)
      try require(ERR_peek_error() == 0, "no error is left to the next connection")
      try require(reception.count == 0 && !connection.link.isHandshakeDone, "who knows no keys completes nothing")
      let pinned = OpenSSLMemory.count - before
      try require(hello.stage == .answered || pinned <= room, "a stranger is given little room", "\(pinned) bytes")
    }
    let link = connection.link
    let greeting = Greeting(
      failure: link.failure, hasEnded: link.hasEnded, isAnswered: hello.stage == .answered,
      answer: Array(connection.take().prefix(9)))
    connection.close()
    try require(OpenSSLMemory.count - first <= commonRoom, "a connection gives everything back")
    return greeting
  }

  /// One end of a connection, whose other end is in our hands.
  private struct Connection {
    let bio = WindowBIO()
    var link = SocketState()
    private let peer: Int32

    init(_ makeStream: (WindowBIO) -> OpaquePointer?) {
      var ends: [Int32] = [-1, -1]
      let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
      guard socketpair(AF_UNIX, kind, 0, &ends) == 0, let tls = makeStream(bio) else {
        Standard.error("error: no connection: \(errno)")
        exit(70)
      }
      (link.fd, peer, link.tls) = (ends[0], ends[1], tls)
    }

    /// Sends what always fits the socket.
    func put(_ bytes: [UInt8]) {
      _ = send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// What the end has sent.
    func take() -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 32 << 10)
      let count = recv(peer, &bytes, bytes.count, 0)
      return Array(bytes.prefix(max(0, count)))
    }

    mutating func close() {
      link.close()
      bio.deallocate()
      Glibc.close(peer)
    }
  }

  // Written by one input at a time, on one thread.
  nonisolated(unsafe) private static let plain = PlainBuffer()
  private static let authority = Fixtures.shared.authorityFolder

  /// It asks for client certificates, which TLS 1.2 sends in the clear.
  private static let server: ServerTLS = {
    do {
      return try ServerTLS(
        .init(certificateFile: authority.serverCertificatePath, keyFile: authority.serverKeyPath),
        clientAuthorityFile: authority.tlsAuthorityPath)
    } catch {
      Standard.error("error: there is no server: \(error)")
      exit(70)
    }
  }()

  /// Bytes that OpenSSL held when the first input came.
  private static let first = OpenSSLMemory.count

  static func seeds() throws -> [[UInt8]] {
    var streams: [[UInt8]] = [
      // It says that it has 131,392 bytes.
      [22, 3, 1, 0, 4, 1, 2, 1, 0x40], [22, 3, 1, 0, 3, 1, 0, 1], Array("GET / HTTP/1.1\r\n".utf8), [0x80, 0x2E, 1],
    ]
    for groups in ["X25519:P-256", "P-384", "P-521:X25519"] {
      for isOld in [false, true] {
        let flights = try flights(groups: groups, isOld: isOld)
        for count in flights.indices { streams.append(Array(flights[...count].joined())) }
      }
    }
    return streams.flatMap { [[0x55] + $0, [0] + $0] }
  }

  /// What a client sends in a handshake, each time that it is asked.
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
    client.link.startHandshake(through: client.bio.window)
    var flights: [[UInt8]] = []
    while case let flight = client.take(), !flight.isEmpty {
      flights.append(flight)
      server.put(flight)
      _ = server.link.receive(into: plain.start, through: server.bio.window)
      client.put(server.take())
      _ = client.link.receive(into: plain.start, through: client.bio.window)
    }
    return flights
  }
}

/// How much OpenSSL holds. It is asked for every input, on one thread.
enum OpenSSLMemory {
  /// Bytes that were asked for and not given back.
  nonisolated(unsafe) private(set) static var count = 0
  /// In front of each block stands its size, in as many bytes as keep what follows aligned.
  private static let header = 16

  /// To be called before OpenSSL has been used.
  static func begin() {
    let isCounted = CRYPTO_set_mem_functions(
      { size, _, _ in OpenSSLMemory.resize(nil, to: size) },
      { block, size, _, _ in OpenSSLMemory.resize(block, to: size) },
      { block, _, _ in _ = OpenSSLMemory.resize(block, to: 0) })
    guard isCounted == 1 else {
      Standard.error("error: OpenSSL's memory cannot be counted")
      exit(70)
    }
  }

  /// As `realloc`: of no bytes it frees, and where there are none to have, it leaves what is there.
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
