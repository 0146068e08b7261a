import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing

/// A client that is slow before its first request is complete.
enum SlowClient: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case connectsAndIsSilent
  case sendsItsClientHelloByteByByte
  case isSilentAfterTheHandshake
  case sendsItsHeadByteByByte

  var testDescription: String { rawValue }

  /// Returns the gate's answer before it closes the connection.
  func answer(of gate: GateProcess) async throws -> String {
    switch self {
    case .connectsAndIsSilent:
      return try await RawClient.talk(to: gate.port, first: [], each: nil)
    case .sendsItsClientHelloByteByByte:
      // The header of a TLS record and the beginning of a ClientHello of 512 bytes.
      return try await RawClient.talk(to: gate.port, first: [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3], each: 0x61)
    case .isSilentAfterTheHandshake:
      return try await overTLS("sleep 30", to: gate)
    case .sendsItsHeadByteByByte:
      return try await overTLS(
        #"printf 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: '; while printf a; do sleep 1; done"#, to: gate)
    }
  }

  /// Returns the answer to the output of `script`.
  private func overTLS(_ script: String, to gate: GateProcess) async throws -> String {
    let openssl = try Places.tool("openssl")
    let client =
      "timeout 30 \(openssl) s_client -quiet -verify_return_error -CAfile '\(gate.folder.tlsAuthorityPath)' "
      + "-connect 127.0.0.1:\(gate.port) 2>/dev/null"
    // The shell must not wait for the writer, which notices the end only at its next write.
    let (_, output, _) = try await ChildProcess.run(
      "/bin/bash", ["-c", "\(client) < <(\(script)); kill $! 2>/dev/null"], within: .seconds(40))
    return output.joined(separator: "\n")
  }
}

@Suite("Slow clients", .timeLimit(.minutes(10)))
struct SlowClientTests {
  @Test("A slow client is disconnected after ten seconds", arguments: SlowClient.allCases)
  func cut(client: SlowClient) async throws {
    try await GateProcess.serving(GatePlan()) { gate in
      let start = ContinuousClock.now
      let answer = try await client.answer(of: gate)
      let patience = start.duration(to: .now)
      // Not before. Afterwards a busy machine may need longer; the client itself would end after 30 seconds.
      #expect(patience > .seconds(9.5), "\(patience)")
      #expect(answer.hasPrefix("HTTP/1.1 408 ") == (client == .sendsItsHeadByteByByte), "\(answer)")
      // Other clients are served normally.
      #expect(try await Visitor(to: gate).challenge().count == 64)
    }
  }
}

/// A TCP socket without TLS, on a new thread.
enum RawClient {
  /// Sends `first`, then `each` every half second, until the other side closes the connection. Returns the received
  /// text; throws after 20 seconds.
  static func talk(to port: UInt16, first: [UInt8], each: UInt8?) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try converse(with: port, first: first, each: each) })
      }
    }
  }

  private static func converse(with port: UInt16, first: [UInt8], each: UInt8?) throws -> String {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = Loopback.address(port: port)
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else { throw Unexpected("cannot connect: \(String(cString: strerror(errno)))") }
    send(descriptor, first, first.count, Int32(MSG_NOSIGNAL))
    var received: [UInt8] = []
    for _ in 0..<40 {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      if poll(&wait, 1, 500) > 0 {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count <= 0 { return String(decoding: received, as: UTF8.self) }
        received += buffer[..<count]
      } else if let each {
        send(descriptor, [each], 1, Int32(MSG_NOSIGNAL))
      }
    }
    throw Unexpected("the connection is still open after 20 seconds")
  }
}
