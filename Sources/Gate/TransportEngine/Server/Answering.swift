internal import ByteCoding
internal import Transport

/// Sends responses, then continues with the next request or closes the connection.
extension EventLoop {
  /// Answers bytes that never became a request. The bytes after them are never parsed.
  ///
  /// - Parameter path: The path of a request whose head has the fault, if it is known.
  func refuse(_ session: SessionRef, _ fault: RequestError, at path: String? = nil) {
    guard let service, let http = session.pointee.http else { return }
    http.request.closesAfterAnswer = true
    answer(
      session,
      service.responder.response(
        to: fault, at: http.request.head?.path ?? path, of: http.request.head?.headers, id: http.request.id,
        from: http.peer))
  }

  func answer(_ session: SessionRef, _ response: Response) {
    guard let service, let http = session.pointee.http else { return }
    session.pointee.phase = .answer
    session.pointee.waitOrder = nextWaitOrder()
    if response.closes { http.request.closesAfterAnswer = true }
    http.answered += 1
    http.forwardedPatience = nil
    if http.request.closesAfterAnswer { http.inbox = [] }
    schedule(session, after: service.limits.decisionTimeout)
    do throws(HeadWriteError) {
      sendToClient(
        session,
        try ResponseWriter.bytes(
          of: response, closes: http.request.closesAfterAnswer, isForHEAD: http.request.head?.method == "HEAD",
          at: .now()))
    } catch {
      // The responder put a line break into a field: no part of this response may be sent.
      sendToClient(
        session, Array("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
      http.request.closesAfterAnswer = true
    }
    answerFlushed(session)
  }

  /// Answers a request that the responder has not decided in time, or whose decision can no longer be carried out. A
  /// later decision is dropped.
  func answerWithoutDecision(_ session: SessionRef) {
    guard let service, let http = session.pointee.http, let head = http.request.head else {
      destroy(session)
      return
    }
    http.request.closesAfterAnswer = true
    let request = Request(head, id: http.request.id, upgrade: http.request.upgrade)
    answer(session, service.responder.responseWithoutDecision(on: request, from: http.peer))
  }

  /// Answers with a line of text, and closes the connection.
  func close(_ session: SessionRef, answering status: Int, _ line: String) {
    let type = HeaderFields.Field(name: "Content-Type", value: "text/plain")
    answer(
      session, Response(status: status, headers: HeaderFields([type]), body: Array((line + "\n").utf8), closes: true))
  }

  /// Handles a client that has not read a response in time. A response from an upstream may be long: the client keeps
  /// its connection as long as it reads enough of it.
  func answerExpired(_ session: SessionRef) {
    if let patience = session.pointee.http?.forwardedPatience, isTaking(session, .client) {
      schedule(session, after: patience)
    } else {
      destroy(session)
    }
  }

  /// Returns whether a peer has read at least 4 KiB of its pending bytes since the last call. A peer that reads a
  /// byte a minute only holds resources that other clients need.
  func isTaking(_ session: SessionRef, _ side: Side) -> Bool {
    let end = session.pointee.ends + side.index
    return end.pointee.socket.isOpen && end.pointee.socket.noteTaking(at: now) >= 4096
  }

  func sendToClient(_ session: SessionRef, _ bytes: [UInt8]) {
    bytes.withUnsafeBytes { session.pointee.ends.pointee.socket.send($0, through: buffers) }
  }

  /// Continues once the kernel has taken the whole response.
  func answerFlushed(_ session: SessionRef) {
    let client = session.pointee.ends
    guard client.pointee.socket.failure == nil, let http = session.pointee.http else {
      destroy(session)
      return
    }
    guard client.pointee.socket.outbox.isEmpty else {
      updateInterest(session, .client, reads: false)
      return
    }
    // A client that has closed its sending side may have sent another request before.
    guard !http.request.closesAfterAnswer, !client.pointee.socket.hasEnded || !http.inbox.isEmpty else {
      beginLingeringClose(session)
      return
    }
    startRequest(session)
    guard !http.inbox.isEmpty else { return }
    // Goes through the mailbox, so that a client that pipelines many requests does not starve the other connections.
    let token = session.pointee.token
    execute { $0.resumeRequests(token) }
  }

  /// Begins a lingering close: sends the end of the stream and waits for the client's end. An immediate close would
  /// reset the connection if unread input is left, and the client could lose the response (RFC 9112 section 9.6).
  func beginLingeringClose(_ session: SessionRef) {
    session.pointee.phase = .lingeringClose
    session.pointee.http?.inbox = []
    if session.pointee.http?.forwardedPatience == nil { session.pointee.http = nil }
    session.pointee.closeDeadline = now + Self.lingeringCloseTime.milliseconds
    schedule(session, after: lingeringPatience)
    session.pointee.ends.pointee.socket.sendEnd(through: buffers)
    continueLingeringClose(session)
  }

  private static let lingeringCloseLimit = Duration.seconds(2)
  /// How long a client that does nothing is waited for.
  private var lingeringPatience: Duration {
    min(service?.limits.closeTimeout ?? Self.lingeringCloseLimit, Self.lingeringCloseLimit)
  }
  /// How long a client that goes on sending is waited for. Many read the answer only when they have sent all of their body.
  private static let lingeringCloseTime = Duration.seconds(30)

  /// Handles a client that has not closed in time. It may still be sending its body, or reading an upstream's response:
  /// the kernel may buffer megabytes of it.
  func lingeringCloseExpired(_ session: SessionRef) {
    let sent = session.pointee.ends.pointee.socket.lastHeard + lingeringPatience.milliseconds
    if session.pointee.http?.forwardedPatience != nil, isTaking(session, .client) {
      schedule(session, after: Self.lingeringCloseLimit)
    } else if let end = session.pointee.closeDeadline, now < min(sent, end) {
      timers.schedule(session.pointee.timer, at: min(sent, end))
    } else {
      destroy(session)
    }
  }

  func continueLingeringClose(_ session: SessionRef) {
    let client = session.pointee.ends
    // Input is discarded without decrypting it.
    if client.pointee.socket.failure == nil && !client.pointee.socket.hasEnded {
      if client.pointee.socket.discardInput(into: plain.start) { client.pointee.socket.lastHeard = now }
    }
    if client.pointee.socket.failure != nil || client.pointee.socket.hasEnded && client.pointee.socket.outbox.isEmpty {
      destroy(session)
    } else {
      updateInterest(session, .client)
    }
  }
}
