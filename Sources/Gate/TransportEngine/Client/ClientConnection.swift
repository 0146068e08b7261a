public import Transport

/// An open connection to a server: one request at a time, and perhaps a WebSocket at the end.
///
/// Its methods may be called from any task; the connection closes when the last reference is gone.
public final class ClientConnection: Sendable {
  let channel: ClientChannelReference
  private let engine: ClientEngine

  init(channel: ClientChannelReference, engine: ClientEngine) {
    self.channel = channel
    self.engine = engine
  }

  deinit { channel.close(in: engine.loop) }

  /// Sends a request and waits for the whole answer, at most 1 MiB.
  ///
  /// - Parameter headers: `Host` must be among them; `Content-Length` is added where there is a body.
  public func send(
    _ method: String, _ target: String, headers: HeaderFields, body: [UInt8] = [], timeout: Duration = .seconds(30)
  ) async throws(ClientFault) -> Response {
    let bytes: [UInt8]
    do throws(HeadWriteFault) {
      bytes = try RequestWriter.bytes(method: method, target: target, fields: headers, body: body)
    } catch {
      throw .misused(error.rawValue)
    }
    return try await perform { channel, loop, done in
      guard channel.begin(.response(to: method, done), timeout: timeout, in: loop) else { return }
      channel.transmit(bytes, in: loop)
    }
  }

  /// Asks for a WebSocket. The answer other than 101 is thrown as `ClientFault.refused`.
  public func upgrade(
    _ target: String, host: String, headers: HeaderFields = HeaderFields(), subprotocols: [String] = [],
    maxMessage: Int = 32 << 20, timeout: Duration = .seconds(30)
  ) async throws(ClientFault) -> ClientWebSocket {
    var random = SystemRandomNumberGenerator()
    let key = HandshakeKey.key(of: (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    let bytes: [UInt8]
    do throws(HeadWriteFault) {
      bytes = try RequestWriter.upgrade(
        target: target, host: host, key: key, subprotocols: subprotocols, fields: headers)
    } catch {
      throw .misused(error.rawValue)
    }
    let handshake = ClientHandshake(key: key, subprotocols: subprotocols, maxMessage: maxMessage)
    let answer = try await perform { (channel, loop, done: @escaping ClientChannel.Callback<Response>) in
      guard channel.begin(.upgrade(handshake, done), timeout: timeout, in: loop) else { return }
      channel.transmit(bytes, in: loop)
    }
    return ClientWebSocket(connection: self, response: answer)
  }

  /// Has `start` run on the loop and waits for what it promises.
  func perform<Value: Sendable>(
    _ start: @escaping @Sendable (ClientChannel, EventLoop, @escaping ClientChannel.Callback<Value>) -> Void
  ) async throws(ClientFault) -> Value {
    // The connection closes with this object: it has to be there until the answer is.
    defer { withExtendedLifetime(self) {} }
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<Value, ClientFault>, Never>) in
      engine.loop.execute { [channel] loop in
        channel.use { start($0, loop) { continuation.resume(returning: $0) } }
      }
    }
    return try result.get()
  }
}

/// An open WebSocket.
public final class ClientWebSocket: Sendable {
  let connection: ClientConnection
  /// The server's 101.
  public let response: Response

  init(connection: ClientConnection, response: Response) {
    self.connection = connection
    self.response = response
  }

  /// How the connection ended.
  public struct Ending: Sendable, Hashable {
    /// The code of the server's Close frame; `nil` without one.
    public let code: UInt16?
    public let reason: String
  }

  /// A message, or how the connection ended.
  public enum Event: Sendable, Hashable {
    case message(WebSocketMessage)
    case ended(Ending)
  }

  /// Queues a message; returns once not too much is queued.
  public func send(_ message: WebSocketMessage) async throws(ClientFault) {
    try await connection.perform { channel, loop, done in channel.send(message, in: loop, done) }
  }

  /// Returns once all that was queued has been handed to the system; throws if the connection ends before.
  public func flush() async throws(ClientFault) {
    try await connection.perform { channel, loop, done in channel.flush(in: loop, done) }
  }

  /// The next message, in order. One call at a time.
  public func receive() async throws(ClientFault) -> Event {
    try await connection.perform { channel, loop, done in channel.receive(in: loop, done) }
  }

  /// Sends a Ping and waits for its Pong.
  ///
  /// - Returns: how long that took, to within a few milliseconds.
  public func ping(timeout: Duration = .seconds(10)) async throws(ClientFault) -> Duration {
    let start = ContinuousClock.now
    try await connection.perform { channel, loop, done in channel.ping(timeout: timeout, in: loop, done) }
    return start.duration(to: .now)
  }

  /// Begins the closing handshake. What the server still sends can be received until `Event.ended`, which comes at the
  /// latest when the server has taken nothing, and answered nothing, for `patience`.
  public func close(_ code: CloseCode = .normal, reason: String = "", patience: Duration = .seconds(5)) async {
    let done: Void? = try? await connection.perform { channel, loop, done in
      channel.closeWebSocket(code, reason: reason, patience: patience, in: loop)
      done(.success(()))
    }
    _ = done
  }
}
