import Cryptography
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Network faults on both sides of a running gate, made by a proxy in between.
@Suite("Faulty connections", .serialized, .timeLimit(.minutes(5)))
struct LineFaultTests {
  typealias Cut = FaultProxy.Fault.Cut

  /// Runs a gate with enforcement off in front of `upstream`.
  private func serving(
    _ upstream: String, _ body: (RunningGate) async throws -> Void
  ) async throws {
    try await RunningGate.serving(GateConfiguration(upstream: upstream, enforcement: "off"), body)
  }

  private func port(of backend: EchoBackend) throws -> UInt16 {
    try #require(backend.upstream.split(separator: ":").last.flatMap { UInt16($0) })
  }

  private func front(of gate: RunningGate, through proxy: FaultProxy) -> RunningGate {
    RunningGate(process: gate.process, folder: gate.folder, port: proxy.port)
  }

  private func expectService(of gate: RunningGate) async throws {
    #expect(!gate.process.hasEnded)
    #expect(try await Visitor(gate).send("GET", "/attest/challenge").status == 200)
  }

  /// Returns the next message on `socket`; `nil` if the socket ends.
  private func message(on socket: ClientWebSocket) async -> WebSocketMessage? {
    guard case .message(let message) = try? await socket.receive() else { return nil }
    return message
  }

  @Test("If both connections deliver a few bytes at a time, a socket opens and carries every byte")
  func trickle() async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    let slow = FaultProxy.Fault.trickle(13, pause: 100)
    let upstreamProxy = try FaultProxy(to: port(of: backend), up: slow, down: slow)
    try await serving("ws://127.0.0.1:\(upstreamProxy.port)") { gate in
      let clientProxy = try FaultProxy(to: gate.port, up: slow, down: slow)
      let socket = try await Visitor(front(of: gate, through: clientProxy)).open()
      for size in [0, 1, 125, 126, 5000] {
        let bytes = SecureRandom.bytes(size)
        try await socket.send(.binary(bytes))
        #expect(try await socket.receive() == .message(.binary(bytes)))
      }
    }
  }

  @Test(
    "If the backend's connection breaks inside a frame, the client gets no message, and the gate still serves",
    arguments: [Cut.end, .reset], [300, 5_000, 65_000])
  func backendCut(_ cut: Cut, length: Int) async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    let proxy = try FaultProxy(to: port(of: backend), down: .cut(after: length, by: cut))
    try await serving("ws://127.0.0.1:\(proxy.port)") { gate in
      let socket = try await Visitor(gate).open()
      try await socket.send(.binary(SecureRandom.bytes(100_000)))
      #expect(await message(on: socket) == nil)
      let end = try await gate.log.first("the end of the session") { $0.message == "session closed" }
      #expect(end.end?.isEmpty == false)
      try await expectService(of: gate)
    }
  }

  @Test(
    "If the backend's connection breaks during the answer, the gate answers 502",
    arguments: [Cut.end, .reset], [1, 20, 100]
  )
  func answerCut(_ cut: Cut, length: Int) async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    let proxy = try FaultProxy(to: port(of: backend), down: .cut(after: length, by: cut))
    try await serving("ws://127.0.0.1:\(proxy.port)") { gate in
      #expect(try await Visitor(gate).refusal().status == 502)
      try await expectService(of: gate)
    }
  }

  @Test("If the backend stops answering, the gate answers an upgrade with 502 within the connect timeout")
  func backendHangs() async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    let proxy = try FaultProxy(to: port(of: backend), down: .cut(after: 20, by: .hang))
    try await serving("ws://127.0.0.1:\(proxy.port)") { gate in
      let start = ContinuousClock.now
      async let refusal = Visitor(gate).refusal()
      try await expectService(of: gate)
      #expect(try await refusal.status == 502)
      let patience = start.duration(to: .now)
      #expect(patience > .seconds(9), "\(patience)")
    }
  }

  @Test("If the backend is killed, the open socket is closed with 1014, and a new upgrade gets 502")
  func backendDies() async throws {
    let backend = try await EchoBackend()
    let proxy = try FaultProxy(to: port(of: backend))
    try await serving("ws://127.0.0.1:\(proxy.port)") { gate in
      let visitor = try Visitor(gate)
      let socket = try await visitor.open()
      try await expectEcho(over: socket)
      backend.process.kill()
      guard case .ended(let ending) = try await socket.receive() else {
        Issue.record("a message of a dead backend")
        return
      }
      #expect(ending.code == 1014)
      #expect(try await visitor.refusal().status == 502)
      #expect(try await visitor.refusal().headers.first("X-Attest-Error") == "upstream_unavailable")
    }
  }

  @Test(
    "If the client's connection breaks inside a frame, the backend gets the bytes and then the end of the stream",
    arguments: [Cut.end, .reset])
  func clientCut(_ cut: Cut) async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await serving(witness.url) { gate in
      // After the handshakes of TLS and WebSocket, and inside the message.
      let proxy = try FaultProxy(to: gate.port, up: .cut(after: 40_000, by: cut))
      let socket = try await Visitor(front(of: gate, through: proxy)).open()
      try? await socket.send(.binary(SecureRandom.bytes(200_000)))
      #expect(await message(on: socket) == nil)
      _ = try await gate.log.first("the end of the session") { $0.message == "session closed" }
      #expect(try witness.connectionCount == 1)
      try await expectService(of: gate)
    }
  }

  @Test("If the client's connection breaks in the TLS handshake or in a head, nothing reaches the backend")
  func handshakeCut() async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await serving(witness.url) { gate in
      for length in [1, 4, 5, 6, 60, 200, 300, 400] {
        for cut in [Cut.end, .reset] {
          let proxy = try FaultProxy(to: gate.port, up: .cut(after: length, by: cut))
          #expect((try? await Visitor(front(of: gate, through: proxy)).open()) == nil, "\(length)")
        }
      }
      #expect(try witness.connectionCount == 0)
      try await expectService(of: gate)
    }
  }
}
