internal import COpenSSL
internal import Glibc
internal import Transport

/// Accepts sockets and dispatches readiness and timer events to the handler of the current phase.
extension EventLoop {
  /// Takes ownership of a connection that a listener accepted.
  func adopt(_ fd: Int32, from address: SocketAddress) {
    guard let service, drain == nil, service.admits?(address) ?? true else {
      Glibc.close(fd)
      return
    }
    guard makeRoom(in: service) else {
      Glibc.close(fd)
      return
    }
    if let proxies = service.proxies, !proxies.trusts(address) {
      service.report(.connectionRefused(.untrustedProxy, address: address))
      Glibc.close(fd)
      return
    }
    var tls: OpaquePointer?
    if let context = service.tls {
      tls = context.makeStream(in: bio)
      guard tls != nil else {
        ERR_clear_error()
        Glibc.close(fd)
        return
      }
    }
    let session = SessionRef.allocate(capacity: 1)
    session.initialize(to: RelaySession())
    session.pointee.token = slots.insert(session, .session)
    session.pointee.timer.pointee.slot = session.pointee.token.slot
    let http = HTTPConnection(address: address, acceptedAt: now)
    if case .unix = address { http.peer.process = Socket.process(connectedTo: fd) }
    http.clientAuthorities = service.tls?.clientAuthorities ?? []
    session.pointee.http = http
    session.pointee.waitOrder = nextWaitOrder()
    let client = session.pointee.ends
    client.pointee.socket.fd = fd
    client.pointee.socket.tls = tls
    client.pointee.socket.lastHeard = now
    sessionCount += 1
    setInterest(session, .client, Readiness.input)
    guard service.proxies != nil else {
      beginConnection(session, http)
      return
    }
    session.pointee.phase = .preface
    schedule(session, after: service.limits.handshakeTimeout)
  }

  func ready(_ session: SessionRef, side: Side, _ events: UInt32) {
    let interest = (session.pointee.ends + side.index).pointee.socket.interest
    if interest == Readiness.reset || interest == Readiness.departure {
      if events & Readiness.failed != 0 {
        wasReset(session, side)
      } else if interest == Readiness.departure {
        waitingClientLeft(session)
      }
      return
    }
    if events & Readiness.failed != 0, session.pointee.phase == .handshake,
      let http = session.pointee.http, case .first = http.hello.stage
    {
      resetBeforeAnswer(session, http)
      return
    }
    if session.pointee.phase == .connection, side == .upstream {
      // One check per event: a second one might already see the next attempt.
      connected(session)
      return
    }
    let token = session.pointee.token
    if events & (Readiness.output | Readiness.failed) != 0 {
      writable(session, side)
      guard slots.session(token) != nil else { return }
    }
    if events & ~Readiness.output != 0 { readable(session, side) }
  }

  private func writable(_ session: SessionRef, _ side: Side) {
    let end = session.pointee.ends + side.index
    guard end.pointee.socket.isOpen else { return }
    let waiting = end.pointee.socket.outbox.count
    end.pointee.socket.drainOutbox(through: buffers)
    if end.pointee.socket.outbox.count < waiting { end.pointee.socket.lastTaken = now }
    switch session.pointee.phase {
    case .relay: settle(session)
    case .bridge, .conversation: settleEndpoint(session)
    case .forward: forwardWritable(session)
    case .answer: answerFlushed(session)
    case .lingeringClose: continueLingeringClose(session)
    case .preface, .handshake, .head, .body, .decision, .connection, .upstreamHandshake, .upgrade:
      if end.pointee.socket.failure == nil {
        updateInterest(session, side)
      } else if side == .client {
        destroy(session)
      } else {
        upstreamFailed(session, end.pointee.socket.failure ?? "the connection failed")
      }
    }
  }

  private func readable(_ session: SessionRef, _ side: Side) {
    switch (session.pointee.phase, side) {
    case (.relay, _): relay(session, from: side)
    case (.bridge, _), (.conversation, _): endpointReadable(session, side)
    case (.forward, _): forwardReadable(session, side)
    case (.preface, .client): proxyHeaderReadable(session)
    case (.handshake, .client): handshakeReadable(session)
    case (.head, .client), (.body, .client): requestReadable(session)
    case (.lingeringClose, .client): continueLingeringClose(session)
    case (.upstreamHandshake, .upstream): upstreamHandshakeReadable(session)
    case (.upgrade, .upstream): upgradeReadable(session)
    case (.connection, .client), (.upstreamHandshake, .client), (.upgrade, .client): watchWaitingClient(session)
    case (.decision, .client), (.answer, .client):
      // The client must wait: its bytes stay in the kernel.
      setInterest(session, .client, session.pointee.ends.pointee.socket.outbox.isEmpty ? 0 : Readiness.output)
    case (.preface, .upstream), (.connection, .upstream), (.handshake, .upstream), (.head, .upstream),
      (.body, .upstream),
      (.decision, .upstream), (.answer, .upstream), (.lingeringClose, .upstream):
      setInterest(session, .upstream, 0)
    }
  }

  func expired(_ session: SessionRef) {
    switch session.pointee.phase {
    case .preface: prefaceExpired(session)
    case .handshake:
      reportHandshake(session, "timed out")
      destroy(session)
    case .head:
      headExpired(session)
    case .body: refuse(session, .tooSlow)
    case .answer: answerExpired(session)
    case .lingeringClose: lingeringCloseExpired(session)
    case .decision: answerWithoutDecision(session)
    case .connection: connectionExpired(session)
    case .upstreamHandshake, .upgrade: upstreamFailed(session, .timedOut)
    case .forward: forwardExpired(session)
    case .relay: relayTimer(session)
    case .bridge, .conversation: endpointTimer(session)
    }
  }

  // MARK: TLS

  /// The client has reset the connection before its ClientHello was answered. The kernel keeps what it sent, and the
  /// answer would cost as much as any other handshake.
  private func resetBeforeAnswer(_ session: SessionRef, _ http: HTTPConnection) {
    if http.hello.hasSeenBytes || Socket.takeByte(from: session.pointee.ends.pointee.socket.fd) {
      reportHandshake(session, "the client reset the connection")
    } else {
      service?.report(.connectionUnused(address: http.address))
    }
    destroy(session)
  }

  private func handshakeReadable(_ session: SessionRef) {
    guard let http = session.pointee.http else { return }
    let client = session.pointee.ends
    let reception = client.pointee.socket.receive(greetedBy: &http.hello, into: plain.start, through: buffers)
    guard http.hello.stage != .plainHTTP else {
      refusePlainHTTP(session, http)
      return
    }
    guard client.pointee.socket.failure == nil, client.pointee.socket.isHandshakeDone || !reception.ended else {
      guard http.hello.hasSeenBytes else {
        service?.report(.connectionUnused(address: http.address))
        destroy(session)
        return
      }
      reportHandshake(session, client.pointee.socket.failure ?? "the client closed the connection")
      destroy(session)
      return
    }
    updateInterest(session, .client)
    guard client.pointee.socket.isHandshakeDone else { return }
    if let tls = client.pointee.socket.tls {
      guard !ChallengeResponder.hasAnswered(tls) else {
        // A validator sends nothing, and nothing that it sent is read (RFC 8737 section 3).
        service?.report(.challengeAnswered(address: http.address))
        beginLingeringClose(session)
        return
      }
      if !http.clientAuthorities.isEmpty { CertificateGuard.remove(from: tls) }
      let certificate = PeerCertificate(verifiedBy: tls, trusting: http.clientAuthorities)
      http.peer = Peer(address: http.address, verifiedCertificate: certificate, endpoint: http.peer.endpoint)
      http.handshakeEndedAt = now
      service?.report(.handshakeCompleted(.milliseconds(now - http.acceptedAt)))
    }
    startRequest(session)
    requestReceived(session, reception)
  }

  /// Answers an HTTP request without TLS, without reading the request, and closes the connection.
  private func refusePlainHTTP(_ session: SessionRef, _ http: HTTPConnection) {
    service?.report(.connectionRefused(.plainHTTP, address: http.address))
    close(session, answering: 400, "this port speaks TLS: use https:// or wss://")
  }

  private func reportHandshake(_ session: SessionRef, _ reason: String) {
    guard let service, let http = session.pointee.http else { return }
    let tls = session.pointee.ends.pointee.socket.tls
    let refusal = tls.flatMap(CertificateRefusal.of)
    let reason = tls.map { SSL_get_certificate($0) == nil } == true ? "no certificate yet: \(reason)" : reason
    service.report(
      .handshakeFailed(
        address: http.address, reason: [reason, refusal?.reason].compactMap(\.self).joined(separator: ": "),
        commonName: refusal?.commonName))
  }

  // MARK: Helpers for all phases

  func schedule(_ session: SessionRef, after duration: Duration) {
    timers.schedule(session.pointee.timer, at: now + max(1, duration.milliseconds))
  }

  func setInterest(_ session: SessionRef, _ side: Side, _ wanted: UInt32) {
    let end = session.pointee.ends + side.index
    let current = end.pointee.socket.interest
    guard end.pointee.socket.isOpen, wanted != current else { return }
    end.pointee.socket.interest = wanted
    let data = Self.data(session.pointee.token, side)
    // A socket without any interest is removed from epoll, which would otherwise report hang-ups again and again.
    if wanted == 0 {
      unwatch(end.pointee.socket.fd)
    } else if current == 0 {
      watch(end.pointee.socket.fd, events: wanted, data: data)
    } else {
      rewatch(end.pointee.socket.fd, events: wanted, data: data)
    }
  }

  /// Waits for input if `reads` allows it, and for room if output is pending; for `otherwise` if neither applies.
  func updateInterest(_ session: SessionRef, _ side: Side, reads: Bool = true, otherwise: UInt32 = 0) {
    let end = session.pointee.ends + side.index
    let input = reads && end.pointee.socket.mayRead ? Readiness.input : 0
    let wanted = input | (end.pointee.socket.outbox.isEmpty ? 0 : Readiness.output)
    setInterest(session, side, wanted == 0 ? otherwise : wanted)
  }

  /// Closes both connections and releases the session at once. `session` is invalid afterwards.
  func destroy(_ session: SessionRef, lost: (Side, String)? = nil) {
    timers.cancel(session.pointee.timer)
    slots.remove(session.pointee.token.slot)
    if session.pointee.end == nil, let lost { session.pointee.end = .lost(lost.0.name, lost.1) }
    session.pointee.http?.request.forward?.finish(now: now)
    let plan = session.pointee.plan
    let endpoint = session.pointee.endpoint
    let summary = summary(of: session)
    if let summary { ended.add(summary) }
    session.pointee.deallocate()
    session.deinitialize(count: 1)
    session.deallocate()
    sessionCount -= 1
    if let summary { plan?.closed(summary) }
    endpoint?.finished()
    drained()
  }

  /// Returns the summary of an opened session; `nil` for a session that was never opened.
  private func summary(of session: SessionRef) -> SessionSummary? {
    guard let openedAt = session.pointee.openedAt else { return nil }
    let ends = session.pointee.ends
    return SessionSummary(
      end: session.pointee.end ?? .lost(.client, "the connection was closed"),
      bytesFromClient: ends[0].bytes, bytesFromUpstream: ends[1].bytes,
      duration: .milliseconds(now - openedAt))
  }
}
