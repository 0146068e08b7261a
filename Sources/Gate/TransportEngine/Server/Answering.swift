internal import ByteCoding
internal import Transport

/// Answers, and what follows them: the next request, or the end.
extension EventLoop {
  /// Answers what never became a request. Nothing behind it is ever parsed.
  func refuse(_ session: SessionRef, _ fault: RequestFault) {
    guard let service, let exchange = session.pointee.exchange else { return }
    exchange.closesAfterAnswer = true
    answer(session, service.responder.response(to: fault, id: exchange.requestID, from: exchange.peer))
  }

  func answer(_ session: SessionRef, _ response: Response) {
    guard let service, let exchange = session.pointee.exchange else { return }
    session.pointee.phase = .answer
    if response.closes { exchange.closesAfterAnswer = true }
    exchange.answered += 1
    exchange.forwardedPatience = nil
    if exchange.closesAfterAnswer { exchange.inbox = [] }
    schedule(session, after: service.limits.decisionTimeout)
    do throws(HeadWriteFault) {
      sendToClient(
        session,
        try ResponseWriter.bytes(
          of: response, closes: exchange.closesAfterAnswer, isForHEAD: exchange.head?.method == "HEAD", at: .now()))
    } catch {
      // The responder put a line break into a field: nothing of it may go out.
      sendToClient(
        session, Array("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
      exchange.closesAfterAnswer = true
    }
    answerFlushed(session)
  }

  /// The client has not taken an answer in time. One that comes from an upstream, and may be long, it has as long for as it
  /// takes enough of it.
  func answerExpired(_ session: SessionRef) {
    if let patience = session.pointee.exchange?.forwardedPatience, isTaking(session, .client) {
      schedule(session, after: patience)
    } else {
      destroy(session)
    }
  }

  /// Whether an end has taken enough of what waits for it since that was asked last: a byte a minute is a way to hold
  /// what others need, and no way to read.
  func isTaking(_ session: SessionRef, _ side: Side) -> Bool {
    let end = session.pointee.ends + side.index
    return end.pointee.link.isOpen && end.pointee.link.noteTaking(at: now) >= 4096
  }

  func sendToClient(_ session: SessionRef, _ bytes: [UInt8]) {
    bytes.withUnsafeBytes { session.pointee.ends.pointee.link.send($0, through: window) }
  }

  /// Goes on once the kernel has the whole answer.
  func answerFlushed(_ session: SessionRef) {
    let client = session.pointee.ends
    guard client.pointee.link.failure == nil, let exchange = session.pointee.exchange else {
      destroy(session)
      return
    }
    guard client.pointee.link.outbox.isEmpty else {
      updateInterest(session, .client, reads: false)
      return
    }
    // A client that has ended its side may have sent further requests before.
    guard !exchange.closesAfterAnswer, !client.pointee.link.hasEnded || !exchange.inbox.isEmpty else {
      bidFarewell(session)
      return
    }
    startRequest(session)
    guard !exchange.inbox.isEmpty else { return }
    // By way of the mailbox: a client that sends many requests at once waits its turn among the others.
    let token = session.pointee.token
    execute { $0.resumeRequests(token) }
  }

  /// Says the end and waits until the client has taken notice: closing at once would reset the connection if the
  /// client has sent what was not read, and the answer could be lost (RFC 9112 section 9.6).
  func bidFarewell(_ session: SessionRef) {
    guard let service else { return }
    session.pointee.phase = .farewell
    session.pointee.exchange?.inbox = []
    if session.pointee.exchange?.forwardedPatience == nil { session.pointee.exchange = nil }
    schedule(session, after: min(service.limits.closeTimeout, Self.farewellPatience))
    session.pointee.ends.pointee.link.sendEnd(through: window)
    continueFarewell(session)
  }

  private static let farewellPatience = Duration.seconds(2)

  /// The client has not ended in time. It may still be reading an upstream's answer, of which the kernel holds megabytes.
  func farewellExpired(_ session: SessionRef) {
    if session.pointee.exchange?.forwardedPatience != nil, isTaking(session, .client) {
      schedule(session, after: Self.farewellPatience)
    } else {
      destroy(session)
    }
  }

  func continueFarewell(_ session: SessionRef) {
    let client = session.pointee.ends
    // What comes now is thrown away, encrypted as it is.
    if client.pointee.link.failure == nil && !client.pointee.link.hasEnded {
      client.pointee.link.discardInput(into: plain.start)
    }
    if client.pointee.link.failure != nil || client.pointee.link.hasEnded && client.pointee.link.outbox.isEmpty {
      destroy(session)
    } else {
      updateInterest(session, .client)
    }
  }
}
