internal import COpenSSL
internal import Glibc
internal import Transport

/// Connects to the upstream and asks for the upgrade, up to its 101.
extension EventLoop {
  func openUpstream(_ session: SessionRef, _ http: HTTPConnection, _ plan: any RelayPlan) {
    session.pointee.plan = plan
    reach(session, plan.upstream, within: plan.limits.connectTimeout)
  }

  /// Connects to `upstream`, for a relay or for an ordinary request.
  func reach(_ session: SessionRef, _ upstream: Upstream, within timeout: Duration) {
    session.pointee.http?.request.attempt = UpstreamAttempt(deadline: now + max(1, timeout.milliseconds))
    let client = session.pointee.ends
    // The client is not watched if it sent bytes during the decision, or this request together with an earlier one.
    if client.pointee.socket.hasEnded || client.pointee.socket.interest == 0 { watchWaitingClient(session) }
    begin(session, upstream)
  }

  private func begin(_ session: SessionRef, _ upstream: Upstream) {
    guard let http = session.pointee.http else { return }
    session.pointee.phase = .connection
    http.request.attempt.startServer(hasAlternative: hasAlternative(session), at: now)
    timers.schedule(session.pointee.timer, at: max(http.request.attempt.serverDeadline, now + 1))
    switch upstream {
    case .unix(let path):
      connect(session, to: [.unix(path)])
    case .webSocket(let host, let port), .secureWebSocket(let host, let port, _), .tcp(let host, let port):
      if let literal = SocketAddress(literal: host, port: port) {
        connect(session, to: [literal])
        return
      }
      let (token, id, server) = (session.pointee.token, http.request.id, http.request.attempt.server)
      resolver.resolve(host, port: port) { [self] answer in
        execute { loop in
          // A late answer must not be used for the connection's next request, nor for the next server.
          guard let session = loop.slots.session(token), session.pointee.phase == .connection,
            session.pointee.http?.request.id == id, session.pointee.http?.request.attempt.server == server,
            !session.pointee.ends[1].socket.isOpen
          else { return }
          switch answer {
          case .success(let addresses): loop.connect(session, to: addresses)
          case .failure(let error): loop.upstreamFailed(session, error.description)
          }
        }
      }
    }
  }

  private func connect(_ session: SessionRef, to addresses: [SocketAddress]) {
    session.pointee.http?.request.attempt.start(addresses)
    tryNextAddress(session)
  }

  private func tryNextAddress(_ session: SessionRef) {
    guard let http = session.pointee.http else { return }
    let upstream = session.pointee.ends + 1
    while let address = http.request.attempt.next() {
      do throws(SystemCallError) {
        upstream.pointee.socket = SocketState()
        upstream.pointee.socket.fd = try Socket.make(for: address, below: service?.limits.descriptorCeiling ?? .max)
        if case .unix = address {} else { Socket.disableDelay(on: upstream.pointee.socket.fd) }
        var outcome: Int32? = try Socket.connect(upstream.pointee.socket.fd, to: address) ? 0 : nil
        // Within a machine the attempt ends before connect(2) returns, which does not say so.
        if outcome == nil, address.isLoopback { outcome = Socket.outcome(of: upstream.pointee.socket.fd, to: address) }
        switch outcome {
        case nil:
          setInterest(session, .upstream, Readiness.output)
          timers.schedule(session.pointee.timer, at: http.request.attempt.nextTimeout(at: now))
          return
        case 0:
          established(session)
          return
        case let code?:
          http.request.attempt.lastError = "connect: \(SystemCallError.text(of: code))"
          leave(session, address)
        }
      } catch {
        guard !error.isShortage else {
          upstream.pointee.socket.close()
          upstreamFailed(session, .exhausted("\(error)"))
          return
        }
        http.request.attempt.lastError = "\(address): \(error)"
        leave(session, address)
        // The queue of a Unix socket is full (unix(7)): its server lives, and does not keep up with many clients at once.
        guard case .unix = address, error.number == EAGAIN else { continue }
        if http.request.attempt.waitForRoom(at: now) {
          timers.schedule(session.pointee.timer, at: now + UpstreamAttempt.pause)
          return
        }
        http.request.attempt.lastError = "\(address): its queue of new connections is full"
      }
    }
    upstreamFailed(session, http.request.attempt.lastError)
  }

  /// Handles the timeout of the name resolution, of one address, or of all of them, and the end of a pause.
  func connectionExpired(_ session: SessionRef) {
    guard let http = session.pointee.http else { return }
    let upstream = session.pointee.ends + 1
    guard upstream.pointee.socket.isOpen else {
      if http.request.attempt.waitsForRoom {
        tryNextAddress(session)
        return
      }
      upstreamFailed(session, "\(destination(of: session)?.name?.host ?? "the name"): name resolution timed out")
      return
    }
    guard http.request.attempt.mayTryNext(at: now) else {
      upstreamFailed(session, .timedOut)
      return
    }
    http.request.attempt.lastError = "\(http.request.attempt.description): timed out"
    leave(session, http.request.attempt.address)
    tryNextAddress(session)
  }

  /// Handles the result of the connection attempt.
  func connected(_ session: SessionRef) {
    let upstream = session.pointee.ends + 1
    let code = Socket.pendingError(of: upstream.pointee.socket.fd)
    guard code != 0 else {
      established(session)
      return
    }
    session.pointee.http?.request.attempt.lastError = "connect: \(SystemCallError.text(of: code))"
    leave(session, session.pointee.http?.request.attempt.address)
    tryNextAddress(session)
  }

  /// Closes the socket of an address that cannot be connected to, and lets others be tried before it.
  private func leave(_ session: SessionRef, _ address: SocketAddress?) {
    setInterest(session, .upstream, 0)
    session.pointee.ends[1].socket.close()
    guard let address, let (host, port) = destination(of: session)?.name else { return }
    resolver.avoid(address, for: host, port: port)
  }

  /// Turns to another upstream of the request, if there is one and the current one could not be connected to.
  private func turnsToNextUpstream(_ session: SessionRef, after fault: UpstreamError) -> Bool {
    guard [.connection, .upstreamHandshake].contains(session.pointee.phase), let http = session.pointee.http else {
      return false
    }
    if case .exhausted = fault { return false }
    // A request that has been sent, on a kept connection, may have had its effect.
    let mayTryAnother =
      now < http.request.attempt.deadline && http.request.forward.map { !$0.isSent || $0.isSafe } != false
    let next =
      if let forward = http.request.forward {
        forward.plan.nextUpstream(after: fault, mayTryAnother: mayTryAnother)
      } else {
        session.pointee.plan?.nextUpstream(after: fault, mayTryAnother: mayTryAnother)
      }
    guard let next, mayTryAnother else { return false }
    setInterest(session, .upstream, 0)
    session.pointee.ends[1].socket.close()
    begin(session, next)
    return true
  }

  private func hasAlternative(_ session: SessionRef) -> Bool {
    session.pointee.plan?.hasAlternative ?? session.pointee.http?.request.forward?.plan.hasAlternative ?? false
  }

  private func destination(of session: SessionRef) -> Upstream? {
    session.pointee.plan?.upstream ?? session.pointee.http?.request.forward?.plan.upstream
  }

  private func established(_ session: SessionRef) {
    guard let service, let destination = destination(of: session) else { return }
    if let http = session.pointee.http {
      let attempt = http.request.attempt
      let isSecure = if case .secureWebSocket = destination { true } else { false }
      timers.schedule(session.pointee.timer, at: max(isSecure ? attempt.serverDeadline : attempt.deadline, now + 1))
      // Only after a failed address: otherwise this one is already the first.
      if !attempt.lastError.isEmpty, let address = attempt.address, let (host, port) = destination.name {
        resolver.prefer(address, for: host, port: port)
      }
    }
    let upstream = session.pointee.ends + 1
    switch destination {
    case .webSocket, .unix: speak(session)
    case .tcp:
      reached(session)
      openBridge(session)
    case .secureWebSocket(let host, _, let tls):
      do throws(ServerTLS.SetupError) {
        let context = try service.upstreamTLS.context(for: tls)
        guard let stream = context.makeStream(in: bio, verifying: tls.serverName ?? host) else {
          upstreamFailed(session, OpenSSLError("TLS").description)
          return
        }
        upstream.pointee.socket.tls = stream
        session.pointee.phase = .upstreamHandshake
        upstream.pointee.socket.startHandshake(through: buffers)
        updateInterest(session, .upstream)
        if let failure = upstream.pointee.socket.failure { upstreamFailed(session, failure) }
      } catch {
        upstreamFailed(session, error.description)
      }
    }
  }

  func upstreamHandshakeReadable(_ session: SessionRef) {
    let upstream = session.pointee.ends + 1
    let reception = upstream.pointee.socket.receive(into: plain.start, through: buffers)
    if reception.ended {
      upstreamFailed(session, upstream.pointee.socket.failure ?? "the connection was closed during the TLS handshake")
      return
    }
    updateInterest(session, .upstream)
    guard upstream.pointee.socket.isHandshakeDone else { return }
    if let attempt = session.pointee.http?.request.attempt {
      timers.schedule(session.pointee.timer, at: max(attempt.deadline, now + 1))
    }
    speak(session)
  }

  private func reached(_ session: SessionRef) {
    if let forward = session.pointee.http?.request.forward {
      forward.plan.reached()
    } else {
      session.pointee.plan?.reached()
    }
  }

  private func speak(_ session: SessionRef) {
    reached(session)
    if session.pointee.http?.request.forward != nil {
      sendForward(session)
    } else if isStillPermitted(session) {
      askForUpgrade(session)
    }
  }

  private func askForUpgrade(_ session: SessionRef) {
    guard let http = session.pointee.http else { return }
    let upstream = session.pointee.ends + 1
    session.pointee.phase = .upgrade
    http.request.upgradeHead.withUnsafeBytes { upstream.pointee.socket.send($0, through: buffers) }
    updateInterest(session, .upstream)
    if let failure = upstream.pointee.socket.failure { upstreamFailed(session, failure) }
  }

  // MARK: The response

  func upgradeReadable(_ session: SessionRef) {
    guard let http = session.pointee.http else { return }
    let upstream = session.pointee.ends + 1
    let reception = upstream.pointee.socket.receive(into: plain.start, through: buffers)
    let received = UnsafeRawBufferPointer(start: plain.start, count: reception.count)
    http.request.upstreamInbox.append(contentsOf: received)
    updateInterest(session, .upstream)
    let token = session.pointee.token
    if http.request.upstreamRefusal == nil, let plan = session.pointee.plan {
      let limits = HeadLimits.response(bytes: plan.maxResponseHead)
      if limits.mayDecide(http.request.upstreamInbox, after: received) { parseUpgradeAnswer(session, http, limits) }
    }
    guard slots.session(token) != nil, session.pointee.phase == .upgrade else { return }
    if http.request.upstreamRefusal != nil { readRefusal(session, http, hasEnded: reception.ended) }
    guard reception.ended, slots.session(token) != nil, session.pointee.phase == .upgrade else { return }
    upstreamFailed(session, .misbehaved(upstream.pointee.socket.failure ?? "the connection closed before the response"))
  }

  private func parseUpgradeAnswer(_ session: SessionRef, _ http: HTTPConnection, _ limits: HeadLimits) {
    while true {
      switch http.request.upstreamInbox.withUnsafeBufferPointer({ ResponseHead.parse($0, limits: limits) }) {
      case .incomplete:
        return
      case .fault(let fault):
        upstreamFailed(session, .misbehaved("the response is malformed: \(fault.text(within: limits))"))
        return
      case .head(let head, let length):
        http.request.upstreamInbox.removeFirst(length)
        if head.status == 101 {
          acceptUpgrade(session, http, head)
          return
        }
        if head.status < 200 { continue }
        do throws(BodyError) {
          http.request.upstreamRefusal = UpstreamRefusal(
            head: head, body: try BodyReader(head.framing, limit: UpstreamRefusal.maxBody, extras: .dropped))
        } catch {
          // A length that is too large is the only fault of a framing.
          upstreamFailed(session, .refused(UpstreamRefusal.withoutBody(head)))
        }
        return
      }
    }
  }

  private func readRefusal(_ session: SessionRef, _ http: HTTPConnection, hasEnded: Bool) {
    guard var refusal = http.request.upstreamRefusal else { return }
    // A second reference to the body would copy all of it for each reception.
    http.request.upstreamRefusal = nil
    do throws(BodyError) {
      let taken = try http.request.upstreamInbox.withUnsafeBufferPointer { bytes throws(BodyError) in
        try refusal.body.feed(bytes)
      }
      http.request.upstreamInbox.removeFirst(taken)
      if hasEnded {
        // As for any response: without close_notify, anyone on the path could have ended the stream.
        guard session.pointee.ends[1].socket.endedInOrder || refusal.body.isComplete else { throw .endedEarly }
        try refusal.body.connectionEnded()
      }
      guard refusal.body.isComplete else {
        http.request.upstreamRefusal = refusal
        return
      }
      upstreamFailed(session, .refused(refusal.response))
    } catch .tooLarge {
      upstreamFailed(session, .refused(UpstreamRefusal.withoutBody(refusal.head)))
    } catch {
      upstreamFailed(session, .misbehaved("refused with \(refusal.head.status) and a malformed body"))
    }
  }

  private func acceptUpgrade(_ session: SessionRef, _ http: HTTPConnection, _ head: ResponseHead) {
    guard let intent = http.request.upgrade, let request = http.request.head, let plan = session.pointee.plan else {
      return
    }
    let own = plan.ownSubprotocols
    do throws(UpgradeAnswerError) {
      var answer = try UpgradeAnswer(
        head, accept: HandshakeKey.accept(for: intent.key),
        subprotocols: own.isEmpty ? intent.subprotocols : intent.subprotocols.filter { !own.contains($0) },
        extensions: ExtensionList.names(in: request.headers) ?? [])
      if answer.subprotocol == nil { answer.subprotocol = own.first }
      openRelay(session, http, answer, head)
    } catch {
      upstreamFailed(session, .misbehaved(error.rawValue))
    }
  }

  // MARK: Failure

  func upstreamFailed(_ session: SessionRef, _ reason: String) {
    upstreamFailed(session, .unreachable(reason))
  }

  /// Tries another upstream, or sends the client a response instead of the 101.
  func upstreamFailed(_ session: SessionRef, _ fault: UpstreamError) {
    if turnsToNextUpstream(session, after: fault) { return }
    if let forward = session.pointee.http?.request.forward {
      forwardFailed(session, forward, fault)
      return
    }
    if let plan = session.pointee.plan { giveUp(session, answering: plan.response(to: fault)) }
  }

  /// Whether the session may still begin. If not, the client gets the refusal and the
  /// upstream's connection is closed.
  func isStillPermitted(_ session: SessionRef) -> Bool {
    guard let refusal = session.pointee.plan?.refusal() else { return true }
    giveUp(session, answering: refusal)
    return false
  }

  private func giveUp(_ session: SessionRef, answering response: Response) {
    session.pointee.plan = nil
    setInterest(session, .upstream, 0)
    session.pointee.ends[1].socket.close()
    answer(session, response)
  }
}

extension Upstream {
  /// The host name and port to resolve; `nil` for a Unix socket.
  fileprivate var name: (host: String, port: UInt16)? {
    switch self {
    case .webSocket(let host, let port), .secureWebSocket(let host, let port, _), .tcp(let host, let port): (host, port)
    case .unix: nil
    }
  }
}

extension ResponseHead {
  /// The fields for the client, without those of this hop (RFC 9110 section 7.6.1) and without framing.
  var endToEndFields: HeaderFields {
    // `upgrade` is one of these names, and most often the only option.
    let isUpgrade = connectionOptions == ["upgrade"]
    return headers.filter { field in
      !Self.ofThisHop.contains(field.name) && (isUpgrade || !connectionOptions.contains(where: field.isNamed))
    }
  }

  private static let ofThisHop = FieldNameSet(
    names: ["connection", "upgrade", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "te"])
}
