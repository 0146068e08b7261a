internal import ByteCoding
internal import Transport
internal import TransportEngine

/// Carries messages between a WebSocket and the standard streams.
struct SocketPipe: Sendable {
  /// Runs the socket's loop, as long as somebody holds it.
  let engine: ClientEngine
  let socket: ClientWebSocket
  let isBinary: Bool
  let isJSON: Bool

  /// Writes how long a Ping takes to standard error.
  func measurePing() async throws(Failure) {
    let time: Duration
    do throws(ClientFault) { time = try await socket.ping() } catch { throw Failure(.protocolFault, "ping: \(error)") }
    let (seconds, attoseconds) = time.components
    StandardError.write("ping: \(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms\n")
  }

  /// Sends one message, writes the first answer, and closes.
  func exchange(_ message: String, timeout: Duration) async throws(Failure) {
    try await send(isBinary ? .binary(Array(message.utf8)) : .text(message))
    let deadline = Deadline(after: timeout) { await socket.close() }
    let event = try await next()
    let isLate = deadline.hasPassed
    deadline.cancel()
    switch event {
    case .message(let message): write(message)
    case .ended where isLate: throw Failure(.retryLater, "no answer within \(timeout.components.seconds) seconds")
    case .ended(let ending):
      throw Self.failure(ending) ?? Failure(.protocolFault, "the server closed the socket without an answer")
    }
    await socket.close()
    while case .message = try await next() {}
  }

  /// Runs until both sides have ended, or the server closes.
  ///
  /// When the input has ended and nothing has come for `linger`, the socket is closed: few servers answer what they
  /// were asked once they have been sent a Close. Without `linger` it is the server's to close. SIGINT and SIGTERM
  /// close the socket.
  func run(linger: Duration?) async throws(Failure) {
    let signals = ClosingSignals { Task { await socket.close() } }
    defer { signals.stop() }
    if StandardInput.isTerminal { StandardError.write("connected; each line is a message, Ctrl-D ends\n") }
    let fault = Shared<Failure?>(nil)
    let lastMessage = Shared(ContinuousClock.now)
    // Not a child task: it may be waiting for a person when the server has closed, and nobody waits for it then.
    Task {
      do throws(Failure) {
        try await sendInput()
        guard let linger else { return }
        await silence(of: linger, since: lastMessage)
      } catch {
        fault.set(error)
      }
      await socket.close()
    }
    while case .message(let message) = try await next(ending: fault, signals) {
      lastMessage.set(.now)
      // Nobody reads any more, as behind `| head`: that is an end like any other.
      guard write(message) else { return await socket.close() }
    }
  }

  /// The next message, or `ended` for an end in order; other ends are thrown.
  private func next(ending fault: Shared<Failure?>, _ signals: ClosingSignals) async throws(Failure)
    -> ClientWebSocket.Event
  {
    let event = try await next()
    guard case .ended(let ending) = event, !signals.wereReceived else { return event }
    if let failure = fault.get() ?? Self.failure(ending) { throw failure }
    return event
  }

  /// Returns when nothing has come for `duration`, counted from now on.
  private func silence(of duration: Duration, since lastMessage: Shared<ContinuousClock.Instant>) async {
    var end = ContinuousClock.now + duration
    while .now < end {
      guard (try? await Task.sleep(until: end)) != nil else { return }
      end = max(end, lastMessage.get() + duration)
    }
  }

  private func sendInput() async throws(Failure) {
    let input = StandardInput()
    var splitter = LineSplitter()
    while let bytes = await input.read() {
      if isBinary {
        try await send(.binary(bytes))
      } else {
        for line in splitter.lines(in: bytes) { try await sendLine(line) }
      }
    }
    if let line = splitter.finish() { try await sendLine(line) }
  }

  private func sendLine(_ line: [UInt8]) async throws(Failure) {
    let text = String(decoding: line, as: UTF8.self)
    // Decoding repairs what is not UTF-8, and thereby changes it.
    guard text.utf8.elementsEqual(line) else {
      throw Failure(.badData, "a line of the input is not UTF-8", hint: "--binary sends bytes as they are")
    }
    try await send(.text(text))
  }

  private func send(_ message: WebSocketMessage) async throws(Failure) {
    do throws(ClientFault) { try await socket.send(message) } catch { throw Failure(.protocolFault, "\(error)") }
  }

  private func next() async throws(Failure) -> ClientWebSocket.Event {
    do throws(ClientFault) { return try await socket.receive() } catch { throw Failure(.protocolFault, "\(error)") }
  }

  @discardableResult
  private func write(_ message: WebSocketMessage) -> Bool {
    if isJSON { return StandardOutput.write(JSONOutput.line(MessageReport(message))) }
    return switch message {
    case .text(let text): StandardOutput.write(isBinary ? text : text + "\n")
    case .binary(let bytes): StandardOutput.write(bytes)
    }
  }

  /// `nil` for an ordinary end.
  private static func failure(_ ending: ClientWebSocket.Ending) -> Failure? {
    let reason = ending.reason.isEmpty ? "" : ": \(ending.reason)"
    return switch ending.code {
    case CloseCode.normal.rawValue, 1005: nil
    case CloseCode.revoked.rawValue: Failure(.refused, "this device's key was revoked\(reason)")
    case CloseCode.serviceRestart.rawValue, CloseCode.tryAgainLater.rawValue, CloseCode.goingAway.rawValue:
      Failure(.retryLater, "the server closed the socket with \(ending.code ?? 0)\(reason)")
    case let code?: Failure(.protocolFault, "the server closed the socket with \(code)\(reason)")
    case nil where ending.reason.isEmpty: nil
    case nil: Failure(.protocolFault, ending.reason)
    }
  }
}

/// A message as a line of JSON.
private struct MessageReport: Encodable {
  let type: String
  /// The text, or base64.
  let data: String

  init(_ message: WebSocketMessage) {
    switch message {
    case .text(let text): (type, data) = ("text", text)
    case .binary(let bytes): (type, data) = ("binary", Base64.encode(bytes))
    }
  }
}
