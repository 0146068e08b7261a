internal import COpenSSL

/// A client whose request is complete, and that waits for the upstream. It may close its connection meanwhile.
extension EventLoop {
  /// What the socket of such a client is watched for while it is not read.
  func waitingInterest(_ session: SessionRef) -> UInt32 {
    session.pointee.ends.pointee.wasAsked ? Readiness.reset : Readiness.departure
  }

  /// Watches the socket of a client that waits for the connection to the upstream, or for its 101. Its bytes stay in the
  /// kernel.
  func watchWaitingClient(_ session: SessionRef) {
    updateInterest(session, .client, reads: false, otherwise: waitingInterest(session))
  }

  /// Handles a waiting client that sends no more. It may have closed only its sending side, or cancelled the request; both
  /// look alike, so the gate sends it a record that means nothing. The kernel of a client that is gone answers it with a
  /// reset.
  ///
  /// TLS 1.2 has no such record, and its close_notify ends both directions (RFC 5246 section 7.2.1).
  func waitingClientLeft(_ session: SessionRef) {
    let client = session.pointee.ends
    client.pointee.wasAsked = true
    if let tls = client.pointee.socket.tls {
      if SSL_version(tls) >= TLS1_3_VERSION { client.pointee.socket.sendKeyUpdate(through: buffers) }
      guard SSL_version(tls) >= TLS1_3_VERSION, client.pointee.socket.failure == nil else {
        destroy(session)
        return
      }
    }
    switch session.pointee.phase {
    case .forward:
      if let forward = session.pointee.http?.request.forward { settleForward(session, forward) }
    default: watchWaitingClient(session)
    }
  }
}
