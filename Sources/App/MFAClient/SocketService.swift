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
  /// Orders the opening of the socket and the attaching of sessions.
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
    let answer = try await CallDeadline.within(timeout) { () async throws(NetworkError) in
      try await self.attachedConnection(token).call(operation.name, request)
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

  /// The socket for calls with `token`.
  private func attachedConnection(_ token: String?) async throws(NetworkError) -> Connection {
    guard await mutex.enter() else { throw .gate(.cancelled) }
    let result: Result<Connection, NetworkError>
    do throws(NetworkError) {
      result = .success(try await connection(for: token))
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

  private func attach(_ token: String, to connection: Connection) async throws(NetworkError) {
    guard connection.attachedToken != token else { return }
    _ = try await connection.call("session.attach", ["token": token])
    connection.attachedToken = token
  }

  /// Returns `connection` if it is open, or opens a socket.
  private func open(in connection: Connection?) async throws(NetworkError) -> Connection {
    if let connection, !connection.hasEnded { return connection }
    let request = HTTPRequest(url: url, headers: [HTTPField("Sec-WebSocket-Protocol", Self.subprotocol)])
    do throws(AttestError) {
      let opened = Connection(try await session.openWebSocket(request, by: transport))
      opened.readMessages()
      return opened
    } catch {
      throw .gate(error)
    }
  }
}

/// One open socket with the calls that wait for their answers.
private final class Connection: Sendable {
  private typealias Waiter = CheckedContinuation<Result<Data, NetworkError>, Never>

  private struct State: Sendable {
    var lastID = 0
    var waiters: [Int: Waiter] = [:]
    var attachedToken: String?
    /// Why no more answers arrive; `nil` while the socket is open.
    var end: NetworkError?
  }

  let socket: any MessageSocket
  private let state = LockedValue(State())

  init(_ socket: any MessageSocket) { self.socket = socket }

  var hasEnded: Bool { state.withLock { $0.end != nil } }

  /// The access token of the attached session.
  var attachedToken: String? {
    get { state.withLock(\.attachedToken) }
    set { state.withLock { $0.attachedToken = newValue } }
  }

  /// Sends a request and waits for its answer, which may contain a result or an error of another form.
  ///
  /// A cancelled call stops waiting. Its answer is then ignored.
  func call(_ method: String, _ parameters: some Encodable & Sendable) async throws(NetworkError) -> Data {
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
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (waiter: Waiter) in
        let end = state.withLock { state -> NetworkError? in
          if Task.isCancelled { return .gate(.cancelled) }
          if state.end == nil { state.waiters[id] = waiter }
          return state.end
        }
        if let end {
          waiter.resume(returning: .failure(end))
        } else {
          Task { await send(message, of: id) }
        }
      }
    } onCancel: {
      finish(id, .failure(.gate(.cancelled)))
    }
    return try result.get()
  }

  private func send(_ message: String, of id: Int) async {
    do throws(SocketError) {
      try await socket.send(message)
    } catch {
      finish(id, .failure(.gate(.transport(.lost("\(error)")))))
    }
  }

  /// Hands each answer to its call until the socket ends.
  func readMessages() {
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
    state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: result)
  }

  private func end(_ error: NetworkError) {
    let waiters = state.withLock { state in
      state.end = error
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(returning: .failure(error)) }
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
