public import Transport

/// An open connection to a server. It carries one request at a time and may finally become a WebSocket.
///
/// Its methods may be called from any task. The connection closes when the last reference is released.
public final class ClientConnection: Sendable {
  let channel: ClientChannelReference
  private let engine: ClientEngine
  /// Whether a proxy reads the requests: their targets are in absolute form.
  private let isToProxy: Bool

  init(channel: ClientChannelReference, engine: ClientEngine, isToProxy: Bool = false) {
    self.channel = channel
    self.engine = engine
    self.isToProxy = isToProxy
  }

  deinit { channel.close(in: engine.loop) }

  /// Sends a request and waits for the whole response.
  ///
  /// - Parameters:
  ///   - headers: Must contain `Host`. `Content-Length` is added if there is a body or the method is not GET.
  ///   - longest: The maximum length of the response's body, in bytes.
  ///   - timeout: The time for the whole exchange.
  /// - Throws: `ClientError`; `.misused` if the connection is busy or the request is invalid.
  public func send(
    _ method: String, _ target: String, headers: HeaderFields, body: [UInt8] = [], longest: Int = 1 << 20,
    timeout: Duration = .seconds(30)
  ) async throws(ClientError) -> Response {
    let bytes: [UInt8]
    do throws(HeadWriteError) {
      bytes = try RequestWriter.bytes(method: method, target: target, fields: headers, body: body, toProxy: isToProxy)
    } catch {
      throw .misused(error.rawValue)
    }
    return try await perform { channel, loop, done in
      guard channel.begin(.response(to: method, done), timeout: timeout, in: loop) else { return }
      channel.longestBody = longest
      channel.transmit(bytes, in: loop)
    }
  }

  /// Sends a request without a body, waits for the head of the response, and closes the connection. A long body, or one
  /// that does not end, is not waited for.
  ///
  /// - Returns: The response without its body.
  /// - Throws: `ClientError`; `.misused` if the connection is busy or the request is invalid.
  func sendForHead(
    _ method: String, _ target: String, headers: HeaderFields, timeout: Duration
  ) async throws(ClientError) -> Response {
    let bytes: [UInt8]
    do throws(HeadWriteError) {
      bytes = try RequestWriter.bytes(method: method, target: target, fields: headers, body: [], toProxy: isToProxy)
    } catch {
      throw .misused(error.rawValue)
    }
    return try await perform { (channel, loop, done: @escaping ClientChannel.Callback<Response>) in
      guard channel.begin(.head(done), timeout: timeout, in: loop) else { return }
      channel.transmit(bytes, in: loop)
    }
  }

  /// Asks for a WebSocket.
  ///
  /// - Parameter maxMessage: The maximum payload bytes of one received message.
  /// - Throws: `ClientError`; `.refused` with the response if the status is not 101.
  public func upgrade(
    _ target: String, host: String, headers: HeaderFields = HeaderFields(), subprotocols: [String] = [],
    maxMessage: Int = 32 << 20, timeout: Duration = .seconds(30)
  ) async throws(ClientError) -> ClientWebSocket {
    var random = SystemRandomNumberGenerator()
    let key = HandshakeKey.key(of: (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    let bytes: [UInt8]
    do throws(HeadWriteError) {
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

  /// Resolves the name of the channel's host and connects.
  func open(timeout: Duration) async throws(ClientError) {
    try await perform { channel, loop, done in
      loop.insert(channel)
      channel.begin(.connection(done), timeout: timeout, in: loop)
      channel.resolve(in: loop)
    }
  }

  /// Runs `start` on the loop and waits for its callback.
  func perform<Value: Sendable>(
    _ start: @escaping @Sendable (ClientChannel, EventLoop, @escaping ClientChannel.Callback<Value>) -> Void
  ) async throws(ClientError) -> Value {
    // The connection closes when this object is released: keep it until the response has arrived.
    defer { withExtendedLifetime(self) {} }
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<Value, ClientError>, Never>) in
      engine.loop.execute { [channel] loop in
        channel.use { start($0, loop) { continuation.resume(returning: $0) } }
      }
    }
    return try result.get()
  }
}

/// An open WebSocket of a client.
public final class ClientWebSocket: Sendable {
  let connection: ClientConnection
  /// The server's 101 response.
  public let response: Response

  init(connection: ClientConnection, response: Response) {
    self.connection = connection
    self.response = response
  }

  /// How the WebSocket ended.
  public struct Ending: Sendable, Hashable {
    /// The code of the server's Close frame; `nil` without a Close frame or without a code.
    public let code: UInt16?
    public let reason: String
  }

  /// A received message or the end of the WebSocket.
  public enum Event: Sendable, Hashable {
    case message(WebSocketMessage)
    case ended(Ending)
  }

  /// Queues a message. Returns once at most 1 MiB is queued.
  ///
  /// - Throws: `ClientError.lost` if the WebSocket is closed.
  public func send(_ message: WebSocketMessage) async throws(ClientError) {
    try await connection.perform { channel, loop, done in channel.send(message, in: loop, done) }
  }

  /// Waits until all queued bytes have been passed to the system.
  ///
  /// - Throws: `ClientError` if the connection closes before that.
  public func flush() async throws(ClientError) {
    try await connection.perform { channel, loop, done in channel.flush(in: loop, done) }
  }

  /// Returns the next message or the end, in order. Only one call at a time is allowed.
  ///
  /// - Throws: `ClientError.misused` if another call is waiting.
  public func receive() async throws(ClientError) -> Event {
    try await connection.perform { channel, loop, done in channel.receive(in: loop, done) }
  }

  /// Sends a Ping and waits for its Pong.
  ///
  /// - Returns: The round-trip time, accurate to a few milliseconds.
  /// - Throws: `ClientError`; `.misused` if another Ping is in progress or the WebSocket is closed.
  public func ping(timeout: Duration = .seconds(10)) async throws(ClientError) -> Duration {
    let start = ContinuousClock.now
    try await connection.perform { channel, loop, done in channel.ping(timeout: timeout, in: loop, done) }
    return start.duration(to: .now)
  }

  /// Begins the closing handshake. Messages can be received until `Event.ended`, which arrives at the latest when the
  /// server has neither read nor answered anything for `patience`.
  public func close(_ code: CloseCode = .normal, reason: String = "", patience: Duration = .seconds(5)) async {
    let done: Void? = try? await connection.perform { channel, loop, done in
      channel.closeWebSocket(code, reason: reason, patience: patience, in: loop)
      done(.success(()))
    }
    _ = done
  }
}
