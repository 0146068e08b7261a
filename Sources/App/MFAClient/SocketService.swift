public import AttestClient
internal import ByteCoding
public import Foundation
internal import Locking
public import MFAWire

/// Calls the operations of the MFA backend by JSON-RPC over one WebSocket through the gate.
///
/// The socket is opened, with an assertion of its own, by the first call, and again by the first call after it ended.
/// The server attaches one session to a socket: a call with another token attaches that token first, and a call without
/// a token, when there is a session, opens a second socket. Calls from several tasks are safe, and wait for their answers
/// side by side.
public actor SocketService: MFABackend {
  /// The subprotocol of the backend's sockets.
  public static let subprotocol = "mfa.v1"

  private let session: AttestSession
  private let transport: any WebSocketTransport
  private let url: URL
  private let timeout: Duration
  /// The socket without a session.
  private var plain: Connection?
  /// The socket with a session.
  private var attached: Connection?
  /// Orders the opening of the socket, the attaching of sessions and the requests in them.
  private let mutex = AsyncMutex()

  /// Creates a service for the backend behind the gate of `session`.
  ///
  /// - Parameters:
  ///   - url: The `wss` URL of the backend's socket, if it is not `/socket` after ``MFAConfiguration/path``.
  ///   - timeout: How long a call may take, with the opening of the socket.
  public init(
    session: AttestSession, url: URL? = nil, transport: any WebSocketTransport,
    timeout: Duration = .seconds(MFAConfiguration.timeout)
  ) {
    self.session = session
    self.url = url ?? session.gate.url("wss", MFAConfiguration.path + "/socket")
    self.transport = transport
    self.timeout = timeout
  }

  /// Performs `operation` and returns its response.
  ///
  /// A request whose answer was lost is not repeated: the server may have carried it out.
  ///
  /// - Parameter token: The access token of a session, for operations that need one.
  /// - Throws: `.refused` if the backend refuses; `.gate` if the socket did not open, or ended before the answer;
  ///   `.malformed` if the answer is not what the operation answers.
  public func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    let answer = try await CallDeadline.within(timeout) { () async throws(NetworkError) -> Data in
      let (connection, id) = try await self.enqueue(operation.name, request, token: token)
      return try await connection.answer(to: id)
    }
    do {
      return try JSONDecoder().decode(Answer<Response>.self, from: answer).result
    } catch {
      throw .malformed(requestID: nil, "the answer is not a \(Response.self)")
    }
  }

  /// Closes the sockets. The next call opens another one.
  public func close() async {
    let open = [plain, attached]
    (plain, attached) = (nil, nil)
    for connection in open { await connection?.socket.close() }
  }

  /// Puts a request into the queue of the socket for calls with `token`.
  ///
  /// The request is in the queue before the next call may attach another session: the server carries it out in the
  /// session that is attached when it arrives.
  private func enqueue(
    _ method: String, _ request: some Encodable & Sendable, token: String?
  ) async throws(NetworkError) -> (connection: Connection, id: Int) {
    guard await mutex.enter() else { throw .gate(.cancelled) }
    let result: Result<(connection: Connection, id: Int), NetworkError>
    do throws(NetworkError) {
      let found = try await connection(for: token)
      let id = try found.enqueue(method, request)
      result = .success((connection: found, id: id))
    } catch {
      result = .failure(error)
    }
    await mutex.leave()
    return try result.get()
  }

  private func connection(for token: String?) async throws(NetworkError) -> Connection {
    guard let token else {
      let connection = try await open(in: plain)
      plain = connection
      return connection
    }
    if let attached, !attached.hasEnded {
      try await attach(token, to: attached)
      return attached
    }
    let connection = try await open(in: plain)
    // Until it has a session, it serves calls without one.
    plain = connection
    try await attach(token, to: connection)
    (plain, attached) = (nil, connection)
    return connection
  }

  /// Attaches the session of `token` to a socket.
  ///
  /// After an error that is not a refusal, the server may have attached it or not. No further call then uses the socket:
  /// it would be carried out in a session that is not its own.
  private func attach(_ token: String, to connection: Connection) async throws(NetworkError) {
    guard connection.attachedToken != token else { return }
    let id = try connection.enqueue("session.attach", ["token": token])
    do throws(NetworkError) {
      _ = try await connection.answer(to: id)
    } catch {
      if case .refused = error { throw error }
      if plain === connection { plain = nil }
      if attached === connection { attached = nil }
      connection.retire()
      throw error
    }
    connection.attachedToken = token
  }

  /// Returns `connection` if it is open, or opens a socket.
  private func open(in connection: Connection?) async throws(NetworkError) -> Connection {
    if let connection, !connection.hasEnded { return connection }
    let request = HTTPRequest(url: url, headers: [HTTPField("Sec-WebSocket-Protocol", Self.subprotocol)])
    do throws(AttestError) {
      let opened = Connection(try await session.openWebSocket(request, by: transport))
      opened.start()
      return opened
    } catch {
      throw .gate(error)
    }
  }
}

/// One open socket with the requests whose answers are outstanding.
private final class Connection: Sendable {
  private typealias Waiter = CheckedContinuation<Result<Data, NetworkError>, Never>

  /// A request in the queue, or sent.
  private enum Request: Sendable {
    case open
    case awaited(Waiter)
    /// The answer came, or the socket ended, before a call waited for it.
    case done(Result<Data, NetworkError>)
  }

  private struct State: Sendable {
    var lastID = 0
    var requests: [Int: Request] = [:]
    var attachedToken: String?
    /// Whether the socket is closed after the last answer.
    var isRetired = false
    /// Why no more answers arrive; `nil` while the socket is open.
    var end: NetworkError?
  }

  let socket: any MessageSocket
  private let state = LockedValue(State())
  /// The requests that are to be sent, in their order.
  private let queue = AsyncStream.makeStream(of: (id: Int, message: String).self)

  init(_ socket: any MessageSocket) { self.socket = socket }

  var hasEnded: Bool { state.withLock { $0.end != nil } }

  /// The access token of the attached session.
  var attachedToken: String? {
    get { state.withLock(\.attachedToken) }
    set { state.withLock { $0.attachedToken = newValue } }
  }

  /// Puts a request into the queue and returns its number. The caller waits for the answer by `answer(to:)`.
  func enqueue(_ method: String, _ parameters: some Encodable & Sendable) throws(NetworkError) -> Int {
    if Task.isCancelled { throw .gate(.cancelled) }
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let message: String
    do {
      message = String(
        decoding: try JSONEncoder().encode(Call(method: method, id: id, params: parameters)), as: UTF8.self)
    } catch {
      throw .malformed(requestID: nil, "the request cannot be encoded: \(error)")
    }
    let end = state.withLock { state -> NetworkError? in
      if state.end == nil { state.requests[id] = .open }
      return state.end
    }
    if let end { throw end }
    queue.continuation.yield((id: id, message: message))
    return id
  }

  /// Waits for the answer to a request, which may contain a result or an error of another form. Called once for each.
  ///
  /// A cancelled call stops waiting. Its answer is then ignored.
  func answer(to id: Int) async throws(NetworkError) -> Data {
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (waiter: Waiter) in
        let known = state.withLock { state -> Result<Data, NetworkError>? in
          guard case .done(let result)? = state.requests[id] else {
            state.requests[id] = .awaited(waiter)
            return nil
          }
          state.requests[id] = nil
          return result
        }
        if let known { waiter.resume(returning: known) }
      }
    } onCancel: {
      finish(id, .failure(.gate(.cancelled)))
    }
    closeIfDone()
    return try result.get()
  }

  /// Closes the socket when the last outstanding answer has come. No further request may be put into the queue.
  func retire() {
    state.withLock { $0.isRetired = true }
    closeIfDone()
  }

  private func closeIfDone() {
    guard state.withLock({ $0.isRetired && $0.requests.isEmpty }) else { return }
    Task { await socket.close() }
  }

  private func send(_ message: String, of id: Int) async {
    do throws(SocketError) {
      try await socket.send(message)
    } catch {
      finish(id, .failure(.gate(.transport(.lost("\(error)")))))
    }
  }

  /// Sends the requests in their order, and hands each answer to its call, until the socket ends.
  func start() {
    Task {
      for await request in queue.stream { await send(request.message, of: request.id) }
    }
    Task {
      while true {
        do throws(SocketError) {
          receive(try await socket.receive())
        } catch {
          end(.gate(.transport(.lost("\(error)"))))
          return
        }
      }
    }
  }

  private func receive(_ text: String) {
    let data = Data(text.utf8)
    guard let envelope = try? JSONDecoder().decode(Envelope.self, from: data) else {
      // An answer that cannot be told from another one: no call may take it for its own.
      end(.malformed(requestID: nil, "a message is not JSON-RPC 2.0"))
      Task { await socket.close() }
      return
    }
    // Notifications of the server have no id.
    guard let id = envelope.id else { return }
    finish(id, envelope.error.map { .failure($0.refusal) } ?? .success(data))
  }

  private func finish(_ id: Int, _ result: Result<Data, NetworkError>) {
    let waiter = state.withLock { state -> Waiter? in
      switch state.requests[id] {
      case .awaited(let waiter):
        state.requests[id] = nil
        return waiter
      case .open:
        state.requests[id] = .done(result)
        return nil
      // The call stopped waiting.
      case .done, nil: return nil
      }
    }
    waiter?.resume(returning: result)
  }

  private func end(_ error: NetworkError) {
    let ids = state.withLock { state in
      state.end = error
      return Array(state.requests.keys)
    }
    for id in ids { finish(id, .failure(error)) }
    queue.continuation.finish()
  }
}

/// A request of JSON-RPC 2.0 (section 4).
private struct Call<Parameters: Encodable>: Encodable {
  let jsonrpc = "2.0"
  let method: String
  let id: Int
  let params: Parameters
}

/// What tells the messages of a server apart.
private struct Envelope: Decodable {
  let id: Int?
  let error: Failure?

  struct Failure: Decodable {
    let code: Int
    let message: String
    let data: ErrorBody?

    var refusal: NetworkError {
      guard let data else {
        return .malformed(requestID: nil, "error \(code) without a reason: \(TerminalText.printable(message))")
      }
      return .refused(BackendRefusal(data))
    }
  }
}

private struct Answer<Value: Decodable>: Decodable {
  let result: Value
}
