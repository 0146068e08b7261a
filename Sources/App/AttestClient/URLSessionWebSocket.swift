// URLSession's WebSockets do not work outside of Apple's systems.
#if canImport(Darwin)
  public import Foundation

  extension AttestSession {
    /// Opens the WebSocket at `url`, a `wss` URL of this session's gate, with the three headers.
    ///
    /// The same as `openWebSocket(_:session:)` with a request that has no other fields.
    public func openWebSocket(
      _ url: URL, session: URLSession = .shared
    ) async throws(AttestError) -> URLSessionWebSocketTask {
      try await openWebSocket(URLRequest(url: url), session: session)
    }

    /// Opens the WebSocket of `request` with the three headers.
    ///
    /// Returns when the gate has answered 101. If it does not, or if the calling task is cancelled, the task is
    /// cancelled. Refusals are handled as in `open`. `session` limits the time (`timeoutIntervalForRequest`), and its
    /// delegate receives the usual calls about certificates and the end of the socket. For the certificate of a debug
    /// build use a session whose delegate presents it, and open its task without this library.
    ///
    /// - Parameters:
    ///   - request: Its URL is a `wss` URL with the host and port of this session's gate. It may have fields of its
    ///     own, for example `Authorization`, or `Sec-WebSocket-Protocol` with the subprotocols that the app accepts.
    ///     Fields with the names of the three headers are replaced.
    ///   - session: Opens the socket.
    /// - Throws: `.unusableAddress` if the URL is not the gate's; `.assertionFailed`, `.keyRevoked` or
    ///   `.registrationFailed` if the gate refuses; `.transport` if there was no complete answer.
    public func openWebSocket(
      _ request: URLRequest, session: URLSession = .shared
    ) async throws(AttestError) -> URLSessionWebSocketTask {
      guard let url = request.url, gate.serves(socket: url) else {
        throw .unusableAddress(request.url?.absoluteString ?? "")
      }
      return try await open { headers throws(UpgradeError) in
        var request = request
        for field in headers.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return try await session.openTask(request)
      }
    }
  }

  /// Opens sockets with `URLSession`, for `AttestSession.openWebSocket(_:by:)`.
  public struct URLSessionSocketTransport: WebSocketTransport {
    private let session: URLSession

    /// Opens sockets with `session`, which limits the time of an opening (`timeoutIntervalForRequest`).
    public init(session: URLSession = .shared) { self.session = session }

    /// Opens the WebSocket of `request` and returns after the server's 101.
    public func openWebSocket(_ request: HTTPRequest) async throws(UpgradeError) -> any MessageSocket {
      var opening = URLRequest(url: request.url)
      for field in request.headers { opening.setValue(field.value, forHTTPHeaderField: field.name) }
      return TaskSocket(task: try await session.openTask(opening))
    }
  }

  /// An open WebSocket of `URLSession`.
  private struct TaskSocket: MessageSocket {
    let task: URLSessionWebSocketTask

    func send(_ text: String) async throws(SocketError) {
      do { try await task.send(.string(text)) } catch { throw end(error) }
    }

    func receive() async throws(SocketError) -> String {
      let message: URLSessionWebSocketTask.Message
      do { message = try await task.receive() } catch { throw end(error) }
      guard case .string(let text) = message else { throw .malformed("a binary message") }
      return text
    }

    func close() async { task.cancel(with: .normalClosure, reason: nil) }

    private func end(_ error: any Error) -> SocketError {
      // Without a Close frame of the server the code is 0.
      guard task.closeCode != .invalid else { return .lost(error.localizedDescription) }
      let reason = String(decoding: task.closeReason ?? Data(), as: UTF8.self)
      return .closed(SocketClosure(code: UInt16(exactly: task.closeCode.rawValue), reason: reason))
    }
  }

  extension URLSession {
    /// Opens the WebSocket of `request`. A task that does not open is cancelled.
    fileprivate func openTask(_ request: URLRequest) async throws(UpgradeError) -> URLSessionWebSocketTask {
      let task = webSocketTask(with: request)
      let handshake = Handshake()
      task.delegate = handshake
      if let error = await handshake.error(of: task) {
        task.cancel()
        throw error
      }
      return task
    }
  }

  /// Waits for the opening or the end of a task's socket, whichever is first.
  private final class Handshake: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {
    private typealias Waiter = CheckedContinuation<UpgradeError?, Never>

    // All are guarded by `lock`.
    private let lock = NSLock()
    private var waiter: Waiter?
    private var isOver = false
    private var outcome: UpgradeError?

    /// Starts `task` and returns the error of its opening handshake; `nil` if the socket is open. Call it once.
    func error(of task: URLSessionWebSocketTask) async -> UpgradeError? {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          lock.lock()
          // A cancelled task has ended before anything waits for it.
          let (hasEnded, outcome) = (isOver, outcome)
          if !hasEnded { waiter = continuation }
          lock.unlock()
          if hasEnded { continuation.resume(returning: outcome) } else { task.resume() }
        }
      } onCancel: {
        task.cancel()
      }
    }

    /// Only the first call counts, because an open socket also ends later.
    private func finish(_ error: UpgradeError?) {
      lock.lock()
      let waiter = isOver ? nil : self.waiter
      if !isOver { outcome = error }
      isOver = true
      self.waiter = nil
      lock.unlock()
      waiter?.resume(returning: error)
    }

    func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol subprotocol: String?
    ) {
      finish(nil)
      (session.delegate as? any URLSessionWebSocketDelegate)?
        .urlSession?(session, webSocketTask: webSocketTask, didOpenWithProtocol: subprotocol)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      finish(Self.upgradeError(of: task, error))
      (session.delegate as? any URLSessionTaskDelegate)?.urlSession?(session, task: task, didCompleteWithError: error)
    }

    private static func upgradeError(of task: URLSessionTask, _ error: (any Error)?) -> UpgradeError {
      guard let answer = task.response as? HTTPURLResponse, answer.statusCode != 101 else {
        return .transport(error.map { TransportError($0) } ?? .lost("the connection ended before the handshake"))
      }
      let headers = answer.allHeaderFields.map { HTTPField("\($0.key)", "\($0.value)") }
      return .refused(GateRefusal(HTTPResponse(status: answer.statusCode, headers: headers)))
    }
  }
#endif
