import Foundation
import Locking
import NIOCore
import NIOHTTP1
import NIOPosix
public import NIOWebSocket

/// A WebSocket client that speaks JSON-RPC.
public final class TestSocket: Sendable {
  private let outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
  private let received: Mailbox
  private let nextID = LockedValue(0)
  public let subprotocol: String?
  private let read: @Sendable () async throws -> Void

  /// Opens a socket to `backend` like the gate does for `app`, and calls `body` with it.
  ///
  /// - Parameter isReading: whether the client reads from the beginning. Otherwise it reads after `startReading()`.
  public static func with<R: Sendable>(
    _ backend: TestBackend, as app: AppInstance, token: String? = nil, path: String = "/",
    subprotocol: String? = "mfa.v1", identifiedBy gate: TestGate? = nil, isReading: Bool = true,
    _ body: (TestSocket) async throws -> R
  ) async throws -> R {
    try await with(
      port: backend.port, assertion: try await (gate ?? backend.gate).assertion(for: app), token: token, path: path,
      subprotocol: subprotocol, isReading: isReading, body)
  }

  /// Opens a socket to the backend at `port` with the identity `assertion`, and calls `body` with it.
  public static func with<R: Sendable>(
    port: Int, assertion: String, token: String? = nil, path: String = "/", subprotocol: String? = "mfa.v1",
    isReading: Bool = true, _ body: (TestSocket) async throws -> R
  ) async throws -> R {
    var headers: HTTPHeaders = ["X-Attest-Assertion": assertion, "Host": "localhost"]
    if let token { headers.add(name: "Authorization", value: "Bearer \(token)") }
    if let subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
    let (channel, chosen) = try await open(port: port, path: path, headers: headers)
    if !isReading { try await channel.channel.setOption(ChannelOptions.autoRead, value: false).get() }
    return try await channel.executeThenClose { inbound, outbound in
      let received = Mailbox()
      let (starts, started) = AsyncStream<Void>.makeStream()
      if isReading { started.finish() }
      let socket = TestSocket(outbound: outbound, received: received, subprotocol: chosen) {
        defer { started.finish() }
        try await channel.channel.setOption(ChannelOptions.autoRead, value: true).get()
      }
      return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for await _ in starts {}
          do { for try await frame in inbound { received.deliver(frame) } } catch {}
          received.end()
        }
        let result: Result<R, any Error>
        do { result = .success(try await body(socket)) } catch { result = .failure(error) }
        group.cancelAll()
        return try result.get()
      }
    }
  }

  private init(
    outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>, received: Mailbox, subprotocol: String?,
    read: @escaping @Sendable () async throws -> Void
  ) {
    self.outbound = outbound
    self.received = received
    self.subprotocol = subprotocol
    self.read = read
  }

  public struct NotUpgraded: Error {}

  private static func open(
    port: Int, path: String, headers: HTTPHeaders
  ) async throws -> (NIOAsyncChannel<WebSocketFrame, WebSocketFrame>, String?) {
    let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(
      host: "127.0.0.1", port: port
    ) { channel in
      channel.eventLoop.makeCompletedFuture {
        let upgrader = NIOTypedWebSocketClientUpgrader<(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>, String?)>(
          upgradePipelineHandler: { channel, head in
            channel.eventLoop.makeCompletedFuture {
              (
                try NIOAsyncChannel(wrappingChannelSynchronously: channel),
                head.headers.first(name: "Sec-WebSocket-Protocol")
              )
            }
          })
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
          configuration: .init(
            upgradeConfiguration: .init(
              upgradeRequestHead: HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: headers),
              upgraders: [upgrader],
              notUpgradingCompletionHandler: { $0.eventLoop.makeFailedFuture(NotUpgraded()) })))
      }
    }
    return try await upgrade.get()
  }

  /// Starts reading the bytes from the server.
  public func startReading() async throws { try await read() }

  /// Sends one text message unchanged.
  public func send(_ text: String) async throws {
    try await outbound.write(
      WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: ByteBuffer(string: text)))
  }

  /// Sends one frame with `opcode`.
  public func send(_ opcode: WebSocketOpcode, fin: Bool = true, _ bytes: [UInt8] = []) async throws {
    try await outbound.write(
      WebSocketFrame(fin: fin, opcode: opcode, maskKey: .random(), data: ByteBuffer(bytes: bytes)))
  }

  /// Sends `frame` as it is.
  public func send(_ frame: WebSocketFrame) async throws { try await outbound.write(frame) }

  /// Calls a method and returns the complete answer.
  public func call(_ method: String, _ parameters: JSONValue? = nil) async throws -> JSONValue {
    let id = nextID.withLock { id in
      id += 1
      return id
    }
    var message: [String: JSONValue] = ["jsonrpc": "2.0", "id": .number(Double(id)), "method": .string(method)]
    message["params"] = parameters
    try await send(JSONValue.object(message).encoded)
    return try await received.next { $0["id"] == .number(Double(id)) }
  }

  /// Returns the next message that `matches` accepts; by default, the next notification.
  public func next(where matches: @escaping @Sendable (JSONValue) -> Bool = { $0["method"] != nil }) async throws
    -> JSONValue
  {
    try await received.next(where: matches)
  }

  /// Waits for the close code of the server.
  public func closeCode() async throws -> Int { try await received.closeCode() }
}

/// The messages that a socket has received, and the tasks that wait for them.
final class Mailbox: Sendable {
  private struct State {
    var messages: [JSONValue] = []
    var closeCode: Int?
    var hasEnded = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var changes = 0
  }

  private let state = LockedValue(State())

  struct Ended: Error {}

  func deliver(_ frame: WebSocketFrame) {
    update { state in
      var data = frame.unmaskedData
      if frame.opcode == .connectionClose {
        state.closeCode = data.readInteger(as: UInt16.self).map(Int.init) ?? 1005
      } else if frame.opcode == .text, let value = try? JSONValue(Data(data.readableBytesView)) {
        state.messages.append(value)
      }
    }
  }

  func end() { update { $0.hasEnded = true } }

  private func update(_ change: (inout State) -> Void) {
    let waiting = state.withLock { state in
      change(&state)
      state.changes += 1
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func next(where matches: @escaping @Sendable (JSONValue) -> Bool) async throws -> JSONValue {
    try await wait { state in
      state.messages.firstIndex(where: matches).map { state.messages.remove(at: $0) }
    }
  }

  func closeCode() async throws -> Int { try await wait { $0.closeCode } }

  /// Calls `look` after every change until it returns a value. The count of changes shows whether a message arrived
  /// between the look and the wait, so no message is missed.
  private func wait<Value>(_ look: @Sendable (inout State) -> Value?) async throws -> Value {
    while true {
      let result = state.withLock { state in (look(&state), state.hasEnded, state.changes) }
      if let value = result.0 { return value }
      if result.1 { throw Ended() }
      await withCheckedContinuation { continuation in
        let isNew = state.withLock { state in
          guard state.changes == result.2 else { return true }
          state.waiting.append(continuation)
          return false
        }
        if isNew { continuation.resume() }
      }
    }
  }
}
