import ByteCoding
import COpenSSL
import Glibc
import TestSupport
import Testing

@testable import TransportEngine

/// Recorded ClientHellos with X25519MLKEM768, which are longer than one segment of TCP.
extension EngineTests {
  @Suite("Post-quantum ClientHellos", .timeLimit(.minutes(5)))
  struct PostQuantumHelloTests {
    private let server: ServerTLS

    init() throws {
      server = try TLSFolder().server()
      // The groups of an OpenSSL without the post-quantum one, so that the recorded retry is needed with every library.
      let isSet = server.withContext { sallyport_SSL_CTX_set1_groups_list($0, "X25519:P-256:P-384") }
      try #require(isSet == 1)
    }

    static func recorded(_ name: String) throws -> [UInt8] {
      let text = try ProjectFile.text("Tests/Gate/ClientHellos/\(name).hex").filter { !$0.isNewline }
      return try #require(Hex.decode(text))
    }

    /// The server's end of a connection, whose bytes a test feeds piece by piece.
    private final class Connection {
      private let bio = BufferBIO()
      private let plain = PlainBuffer()
      private var state = SocketState()
      private var hello = ClientHelloGuard()
      private let peer: Int32

      init(_ server: ServerTLS) throws {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        (state.fd, peer) = (ends[0], ends[1])
        state.tls = server.makeStream(in: bio)
      }

      deinit {
        state.close()
        bio.deallocate()
        plain.deallocate()
        close(peer)
      }

      var failure: String? { state.failure }
      var stage: ClientHelloGuard.Stage { hello.stage }

      func feed(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        _ = send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        _ = state.receive(greetedBy: &hello, into: plain.start, through: bio.buffers)
      }

      /// Returns the bytes that the server has sent.
      func answer() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 32 << 10)
        let count = recv(peer, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
      }
    }

    /// Feeds `flight`, whose last piece completes it, and returns the answer. There is none before.
    private func answer(to pieces: [ArraySlice<UInt8>], by connection: Connection) -> [UInt8] {
      for piece in pieces.dropLast() {
        connection.feed(piece)
        #expect(connection.answer() == [] && connection.failure == nil)
      }
      connection.feed(pieces.last ?? [])
      #expect(connection.failure == nil)
      return connection.answer()
    }

    /// Every cut into two pieces, single bytes, and the segments of a line with 1,448 bytes each.
    private static func fragmentations(of flight: [UInt8]) -> [[ArraySlice<UInt8>]] {
      let cuts = (1..<flight.count).map { [flight[..<$0], flight[$0...]] }
      let segments = stride(from: 0, to: flight.count, by: 1448).map { flight[$0..<min($0 + 1448, flight.count)] }
      return cuts + [flight.indices.map { flight[$0...$0] }, segments, [flight[...]]]
    }

    private static func isServerHello(_ bytes: [UInt8]) -> Bool {
      bytes.count > 43 && bytes[0] == 22 && bytes[5] == 2 && !bytes.withUnsafeBytes(ClientHelloGuard.isRetryRequest)
    }

    @Test("A recorded ClientHello is answered in every fragmentation", arguments: ["chromium-156", "node-24"])
    func fragmented(_ name: String) throws {
      let flight = try Self.recorded(name)
      #expect(flight.count > 1448, "longer than one segment")
      for pieces in Self.fragmentations(of: flight) {
        let connection = try Connection(server)
        let bytes = answer(to: pieces, by: connection)
        try #require(Self.isServerHello(bytes), "\(pieces.map(\.count).prefix(3))")
        #expect(connection.stage == .answered)
      }
    }

    @Test("Both ClientHellos around a HelloRetryRequest are answered in every fragmentation")
    func retried() throws {
      let (first, second) = try (Self.recorded("node-24-retry-1"), Self.recorded("node-24-retry-2"))
      func expectAnswers(_ firstPieces: [ArraySlice<UInt8>], _ secondPieces: [ArraySlice<UInt8>]) throws {
        let connection = try Connection(server)
        let request = answer(to: firstPieces, by: connection)
        try #require(request.withUnsafeBytes(ClientHelloGuard.isRetryRequest), "\(firstPieces.map(\.count).prefix(3))")
        #expect(connection.stage == .second)
        let bytes = answer(to: secondPieces, by: connection)
        try #require(Self.isServerHello(bytes), "\(secondPieces.map(\.count).prefix(3))")
        #expect(connection.stage == .answered)
      }
      for pieces in Self.fragmentations(of: first) { try expectAnswers(pieces, [second[...]]) }
      for pieces in Self.fragmentations(of: second) { try expectAnswers([first[...]], pieces) }
    }

    @Test("A recorded ClientHello with one changed length is refused, and never answered")
    func malformed() throws {
      var flight = try Self.recorded("node-24")
      // The length of the message, beyond what the guard lets OpenSSL read.
      flight[6] = 1
      let connection = try Connection(server)
      connection.feed(flight)
      #expect(connection.answer() == [] && connection.failure?.contains("too long") == true)
    }
  }

  @Suite("Key exchange")
  struct KeyExchangeTests {
    @Test("The post-quantum group is offered exactly if the loaded library has it")
    func offered() {
      let groups = KeyExchange.groups
      #expect(groups.suffix(4) == ["X25519", "P-256", "P-384", "P-521"])
      #expect((groups.first == "X25519MLKEM768") == KeyExchange.hasPostQuantumGroup)
      // The library's own version decides, and no header: this holds also for a library from elsewhere.
      let version = OpenSSLProcess.version.split(separator: ".").compactMap { Int($0) }
      if version.lexicographicallyPrecedes([3, 5]) == false { #expect(KeyExchange.hasPostQuantumGroup) }
      #expect(KeyExchange.summary.contains("has no X25519MLKEM768") != KeyExchange.hasPostQuantumGroup)
    }
  }
}
