internal import ByteCoding
internal import Commands
internal import Transport
internal import TransportEngine

/// Carries messages between a WebSocket and the standard streams.
struct SocketPipe: Sendable {
  /// Runs the socket's loop while this value exists.
  let engine: ClientEngine
  let socket: ClientWebSocket
  let isBinary: Bool
  let isJSON: Bool
  /// Whether a client certificate opened the socket, and no device.
  let hasCertificate: Bool

  /// Prints the round-trip time of a Ping to standard error.
  func measurePing() async throws(Failure) {
    let time: Duration
    do throws(ClientError) { time = try await socket.ping() } catch { throw Failure(.protocolFault, "ping: \(error)") }
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
      throw self.failure(ending) ?? Failure(.protocolFault, "the server closed the socket without an answer")
    }
    await socket.close()
    while case .message = try await next() {}
  }

  /// Runs until both sides have ended, or the server closes.
  ///
  /// After the end of the input, when all of it was sent and no message has arrived for `linger`, the socket is
  /// closed: few servers answer after they have received a Close. Without `linger` the server must close it. SIGINT
  /// and SIGTERM close the socket; the second signal terminates the process.
  func run(linger: Duration?) async throws(Failure) {
    let signals = ClosingSignals(once: true) { Task { await socket.close() } }
    defer { signals.stop() }
    if StandardInput.isTerminal { StandardError.write("connected; each line is a message, Ctrl-D ends\n") }
    let fault = Shared<InputError?>(nil)
    let lastMessage = Shared(ContinuousClock.now)
    // Not a child task: it may wait for a person when the server has closed, and the pipe must not wait for it then.
    Task {
      do throws(InputError) {
        try await sendInput()
        guard let linger else { return }
        try await flush()
        await silence(of: linger, since: lastMessage)
      } catch {
        fault.set(error)
      }
      await socket.close()
    }
    while case .message(let message) = try await next(ending: fault, signals) {
      lastMessage.set(.now)
      // The reader has gone, as with `| head`: that is a normal end.
      guard write(message) else { return await socket.close() }
    }
  }

  /// Returns the next message, or `ended` for an orderly end; throws for other ends.
  ///
  /// The server's reason for the end is preferred to a failure to send, which is often only its consequence.
  private func next(ending fault: Shared<InputError?>, _ signals: ClosingSignals) async throws(Failure)
    -> ClientWebSocket.Event
  {
    let event = try await next()
    guard case .ended(let ending) = event, !signals.wereReceived else { return event }
    switch fault.get() {
    case .input(let failure): throw failure
    case .socket(let failure) where ending.code == nil: throw failure
    case .socket, nil: if let failure = self.failure(ending) { throw failure }
    }
    return event
  }

  /// Returns when no message has arrived for `duration`, counted from now.
  private func silence(of duration: Duration, since lastMessage: Shared<ContinuousClock.Instant>) async {
    var end = ContinuousClock.now + duration
    while .now < end {
      guard (try? await Task.sleep(until: end)) != nil else { return }
      end = max(end, lastMessage.get() + duration)
    }
  }

  private func sendInput() async throws(InputError) {
    let input = StandardInput()
    var splitter = LineSplitter()
    while let bytes = try await read(input) {
      if isBinary {
        try await sendPart(.binary(bytes))
      } else {
        for line in splitter.lines(in: bytes) { try await sendLine(line) }
      }
    }
    if let line = splitter.finish() { try await sendLine(line) }
  }

  private func read(_ input: StandardInput) async throws(InputError) -> [UInt8]? {
    do throws(Failure) { return try await input.read() } catch { throw .input(error) }
  }

  private func sendLine(_ line: [UInt8]) async throws(InputError) {
    let text = String(decoding: line, as: UTF8.self)
    // Decoding replaces malformed UTF-8 and so changes the text.
    guard text.utf8.elementsEqual(line) else {
      throw .input(Failure(.badData, "a line of the input is not UTF-8", hint: "--binary sends bytes as they are"))
    }
    try await sendPart(.text(text))
  }

  private func sendPart(_ message: WebSocketMessage) async throws(InputError) {
    do throws(Failure) { try await send(message) } catch { throw .socket(error) }
  }

  /// Returns when all that was sent has left.
  private func flush() async throws(InputError) {
    do throws(ClientError) { try await socket.flush() } catch { throw .socket(Failure(.protocolFault, "\(error)")) }
  }

  private func send(_ message: WebSocketMessage) async throws(Failure) {
    do throws(ClientError) { try await socket.send(message) } catch { throw Failure(.protocolFault, "\(error)") }
  }

  private func next() async throws(Failure) -> ClientWebSocket.Event {
    do throws(ClientError) { return try await socket.receive() } catch { throw Failure(.protocolFault, "\(error)") }
  }

  /// Returns the output for a text message: unchanged for programs, with printable characters only for a terminal.
  static func output(_ text: String, isBinary: Bool, isTerminal: Bool) -> String {
    let text = isTerminal ? TerminalText.printableLines(text) : text
    return isBinary ? text : text + "\n"
  }

  @discardableResult
  private func write(_ message: WebSocketMessage) -> Bool {
    if isJSON { return StandardOutput.write(JSONOutput.line(MessageReport(message))) }
    return switch message {
    case .text(let text):
      StandardOutput.write(Self.output(text, isBinary: isBinary, isTerminal: StandardOutput.isTerminal))
    case .binary(let bytes): StandardOutput.write(bytes)
    }
  }

  /// `nil` for an ordinary end.
  private func failure(_ ending: ClientWebSocket.Ending) -> Failure? {
    let reason = ending.reason.isEmpty ? "" : ": \(ending.reason)"
    return switch ending.code {
    case CloseCode.normal.rawValue: nil
    case CloseCode.revoked.rawValue where hasCertificate:
      Failure(.refused, "the server closed the socket with 3003\(reason)")
    case CloseCode.revoked.rawValue: Failure(.refused, "this device's key was revoked\(reason)")
    case CloseCode.serviceRestart.rawValue, CloseCode.tryAgainLater.rawValue, CloseCode.goingAway.rawValue,
      CloseCode.timeout.rawValue:
      Failure(.retryLater, "the server closed the socket with \(ending.code ?? 0)\(reason)")
    case CloseCode.badGateway.rawValue:
      Failure(
        .unavailable, "the server closed the socket with 1014\(reason)", hint: "is the backend behind the gate running?"
      )
    case let code?: Failure(.protocolFault, "the server closed the socket with \(code)\(reason)")
    case nil where ending.reason.isEmpty: nil
    case nil: Failure(.protocolFault, ending.reason)
    }
  }
}

/// Why the input was not sent to its end.
private enum InputError: Error {
  /// The input cannot be read, or cannot be sent as it is: only this side knows.
  case input(Failure)
  /// The socket accepts no more messages.
  case socket(Failure)
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
