import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// A stream of distinct messages: each contains its number, which determines its length and content.
private enum NumberedMessage {
  static func at(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
      + Array(repeating: UInt8(truncatingIfNeeded: number), count: number * 131 % 5000)
  }

  /// Returns the size of the frame of an unmasked message in bytes (RFC 6455 section 5.2).
  static func frameSize(_ payload: Int) -> Int { payload + (payload < 126 ? 2 : payload < 65536 ? 4 : 10) }
}

@Suite("A drain during heavy traffic", .serialized, .timeLimit(.minutes(5)))
struct DrainStreamTests {
  /// A backend that streams numbered messages to each socket, and checks the received ones. It stops at the gate's
  /// Close and prints, for each socket, the request's id, the bytes and messages before the Close, and the errors.
  private static let backend = """
    import base64, hashlib, json, socket, struct, threading, time
    def payload(n): return struct.pack(">Q", n) + bytes([n & 255]) * (n * 131 % 5000)
    def frame(data):
        size = len(data)
        return (bytes([0x82, size]) if size < 126 else bytes([0x82, 126]) + struct.pack(">H", size)) + data
    def serve(client):
        head = b""
        while b"\\r\\n\\r\\n" not in head: head += client.recv(1)
        fields = dict(l.lower().split(": ", 1) if ": " in l else (l, "") for l in head.decode().split("\\r\\n"))
        key = next(l.split(": ", 1)[1] for l in head.decode().split("\\r\\n") if l.lower().startswith("sec-websocket-key"))
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        client.sendall(("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                        "Sec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n").encode())
        over = threading.Event()
        def stream():
            n = 0
            try:
                while not over.is_set():
                    client.sendall(frame(payload(n)))
                    n += 1
                    time.sleep(0.004)
            except OSError: pass
        sender = threading.Thread(target=stream)
        sender.start()
        source = client.makefile("rb")
        messages = size = 0
        close, faults = None, []
        while close is None:
            start = source.read(2)
            if len(start) < 2: faults.append("truncated after message %d" % messages); break
            length, count = start[1] & 127, 2
            if length == 126: length, count = struct.unpack(">H", source.read(2))[0], 4
            mask = source.read(4)
            data = bytes(b ^ m for b, m in zip(source.read(length), mask * (length // 4 + 1)))
            if start[0] & 15 == 8: close = struct.unpack(">H", data[:2])[0]; break
            if start[0] != 0x82 or data != payload(messages): faults.append("message %d is different" % messages)
            messages, size = messages + 1, size + count + 4 + length
        over.set()
        sender.join()
        client.sendall(b"\\x88\\x02" + struct.pack(">H", close or 1000))
        # Line and end in one: print writes them one by one, and other threads write in between.
        print(json.dumps({"id": fields["x-request-id"], "messages": messages, "bytes": size, "close": close or 0,
                          "faults": faults}) + "\\n", end="", flush=True)
        client.close()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print("port", listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    """

  /// The data that one end received until the gate's Close.
  private struct Account: Decodable {
    let id: String
    let messages: Int
    let bytes: Int
    let close: Int
    let faults: [String]
  }

  /// Streams to the gate, and checks the received messages, until the gate closes. Calls `begun` after some messages.
  private func talk(over socket: ClientWebSocket, begun: @escaping @Sendable () -> Void) async throws -> Account {
    let sending = Task {
      var number = 0
      while !Task.isCancelled {
        try await socket.send(.binary(NumberedMessage.at(number)))
        number += 1
        // A rate that all ends can sustain: an end that does not answer a Close within 5 seconds is disconnected.
        try await Task.sleep(for: .milliseconds(4))
      }
    }
    defer { sending.cancel() }
    var (messages, bytes, faults) = (0, 0, [String]())
    while true {
      switch try await socket.receive() {
      case .message(.binary(let payload)):
        if payload != NumberedMessage.at(messages) { faults.append("message \(messages) is different") }
        (messages, bytes) = (messages + 1, bytes + NumberedMessage.frameSize(payload.count))
        if messages == 50 { begun() }
      case .message(.text): faults.append("a text after message \(messages)")
      case .ended(let ending):
        return Account(
          id: socket.response.headers.first("X-Request-Id") ?? "", messages: messages, bytes: bytes,
          close: Int(ending.code ?? 0), faults: faults)
      }
    }
  }

  @Test("Every byte that the gate had read from either side reaches the other, in order, followed by the Close")
  func streams() async throws {
    let backend = try ChildProcess("/usr/bin/python3", ["-c", Self.backend])
    defer { backend.kill() }
    let port = try await backend.output.first("the backend's port") { $0.hasPrefix("port ") }.dropFirst(5)
    var plan = GatePlan()
    plan.routes = [("/", "ws://127.0.0.1:\(port)")]
    plan.isEnforcing = false
    plan.further = "shutdown: { drain_timeout: 30s }"
    try await GateProcess.serving(plan) { gate in
      let visitor = try Visitor(to: gate)
      let count = 6
      let talking = Watched(0)
      let clients = try await withThrowingTaskGroup(of: Account.self) { group in
        for _ in 0..<count {
          let socket = try await visitor.open()
          group.addTask { try await talk(over: socket) { talking.update { $0 += 1 } } }
        }
        try await talking.wait(for: "all sockets to talk", within: .seconds(60)) { $0 == count ? () : nil }
        gate.process.send(SIGTERM)
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(try await gate.process.exit(within: .seconds(60)) == .code(0))
      let log = try await gate.process.errors.all()
      #expect(log.last?.contains(#""cut_off":0"#) == true)
      let upstreams = try await backend.output.first(count, "each socket's result") { $0.hasPrefix("{") }
        .map { try JSONDecoder().decode(Account.self, from: Data($0.utf8)) }
      for client in clients {
        let upstream = try #require(upstreams.first { $0.id == client.id })
        #expect(client.faults == [] && upstream.faults == [])
        #expect(client.close == 1001 && upstream.close == 1001)
        #expect(client.messages >= 50 && upstream.messages > 0)
        // The gate counts the bytes that it has passed on: exactly these have arrived.
        let line = try #require(log.first { $0.contains("session closed") && $0.contains(client.id) })
        #expect(line.contains(#""bytes_from_upstream":\#(client.bytes),"#), "\(client) \(line)")
        #expect(line.contains(#""bytes_from_client":\#(upstream.bytes),"#), "\(upstream) \(line)")
      }
    }
  }
}
