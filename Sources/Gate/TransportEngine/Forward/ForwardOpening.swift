internal import COpenSSL
internal import Transport

/// Opens or reuses the upstream's connection and sends the request head.
extension EventLoop {
  /// - Parameter head: From the request line to the last field.
  func openForward(_ session: SessionRef, _ http: HTTPConnection, _ plan: any ForwardPlan, head: [UInt8]) {
    guard let request = http.request.head else { return }
    if case .tcp = plan.upstream {
      // The responder's mistake, not the client's.
      answer(session, Response(status: 500, closes: true))
      return
    }
    do throws(BodyError) {
      http.request.forward = try Forward(plan, head: head, of: request, now: now)
    } catch {
      refuse(session, error.requestError)
      return
    }
    if http.request.forward?.isRepeatable == true, takeKeptUpstream(session, plan.upstream) {
      http.request.forward?.isOnKeptConnection = true
      sendForward(session)
    } else {
      connectForward(session, plan)
    }
  }

  private func connectForward(_ session: SessionRef, _ plan: any ForwardPlan) {
    reach(session, plan.upstream, within: plan.limits.connectTimeout)
  }

  /// Takes a pooled connection. Only a repeatable request uses one, because it may have died unnoticed.
  private func takeKeptUpstream(_ session: SessionRef, _ upstream: Upstream) -> Bool {
    while let kept = keptUpstreams.take(upstream) {
      guard let socket = kept.end(in: self) else { continue }
      session.pointee.ends[1].socket = socket
      return true
    }
    return false
  }

  /// Sends the head on the connected upstream and starts forwarding.
  func sendForward(_ session: SessionRef) {
    guard let http = session.pointee.http, let forward = http.request.forward else { return }
    if let refusal = forward.plan.refusal() {
      giveUp(session, forward, answering: refusal)
      return
    }
    session.pointee.phase = .forward
    http.request.upstreamInbox = []
    schedule(session, after: forward.plan.limits.idleTimeout)
    do throws(BodyError) { try Self.check(http.inbox, as: forward.request) } catch {
      endForward(session, forward)
      refuse(session, error.requestError)
      return
    }
    forward.head.withUnsafeBytes { session.pointee.ends[1].socket.send($0, through: buffers) }
    if !forward.isSent {
      forward.isSent = true
      let (token, id) = (session.pointee.token, http.request.id)
      forward.plan.opened(
        // Weak: a control handle must not keep the loop alive.
        SessionControl { [weak self] _, _ in
          self?.execute { loop in
            guard let session = loop.slots.session(token), let http = session.pointee.http,
              http.request.forward != nil, http.request.id == id
            else { return }
            loop.destroy(session)
          }
        })
      // A client that waits for 100 Continue has not sent its body yet.
      if http.request.head?.expectsContinue == true, http.inbox.isEmpty { sendToClient(session, ResponseWriter.goOn) }
    }
    let early = http.inbox
    http.inbox = []
    let token = session.pointee.token
    early.withUnsafeBufferPointer { forwardFromClient(session, http, forward, $0) }
    // The client has closed in the middle of its request; that is not reported again.
    guard slots.session(token) != nil, http.request.forward === forward, session.pointee.phase == .forward,
      session.pointee.ends.pointee.socket.hasEnded, !forward.request.isComplete
    else { return }
    destroy(session)
  }

  /// Checks the part of a request's body that has come with its head, so that the upstream receives nothing of a
  /// request that is malformed already.
  private static func check(_ early: [UInt8], as body: BodyPipe) throws(BodyError) {
    guard !early.isEmpty else { return }
    var (body, output) = (body, [UInt8]())
    try early.withUnsafeBufferPointer { bytes throws(BodyError) in _ = try body.feed(bytes, into: &output) }
  }

  /// Repeats the request on a new connection, once, if the pooled connection was dead.
  func repeatForward(_ session: SessionRef, _ forward: Forward) -> Bool {
    guard forward.isOnKeptConnection, forward.isRepeatable, session.pointee.http?.request.upstreamInbox.isEmpty == true
    else { return false }
    forward.isOnKeptConnection = false
    setInterest(session, .upstream, 0)
    session.pointee.ends[1].socket.close()
    connectForward(session, forward.plan)
    return true
  }

  /// Returns the upstream's connection to the pool if it can carry another request; otherwise closes it.
  func keepUpstream(_ session: SessionRef, _ forward: Forward) {
    setInterest(session, .upstream, 0)
    let socket = session.pointee.ends[1].socket
    guard forward.keepsConnection, drain == nil, socket.failure == nil, !socket.hasEnded, socket.outbox.isEmpty,
      isVerifiedAsNow(socket, forward.plan.upstream)
    else {
      session.pointee.ends[1].socket.close()
      return
    }
    session.pointee.ends[1].socket = SocketState()
    let kept = PooledUpstream(socket, to: forward.plan.upstream)
    if keptUpstreams.add(kept) { kept.wait(in: self) }
  }

  /// Whether a new connection to `upstream` would be verified with the same authorities as `link`. Each reload
  /// reads the authorities again.
  private func isVerifiedAsNow(_ socket: SocketState, _ upstream: Upstream) -> Bool {
    guard let tls = socket.tls, case .secureWebSocket(_, _, let settings) = upstream else { return true }
    return service?.upstreamTLS.isCurrent(SSL_get_SSL_CTX(tls), for: settings) ?? false
  }
}
