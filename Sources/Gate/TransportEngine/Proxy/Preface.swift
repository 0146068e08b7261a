internal import Glibc
internal import Transport

/// From the accepted socket of a proxy to the client behind it.
extension EventLoop {
  /// What there is may be more than the header, and what follows it is TLS's: so it is looked at first, and only the
  /// header is taken from the kernel.
  func prefaceReadable(_ session: SessionRef) {
    guard let exchange = session.pointee.exchange, let proxies = service?.proxies else { return }
    let fd = session.pointee.ends.pointee.link.fd
    let seen = recv(fd, plain.start, ProxyHeader.longest, Int32(MSG_PEEK))
    guard seen > 0 else {
      if seen == 0 || errno != EAGAIN && errno != EINTR { prefaceEnded(session, exchange) }
      return
    }
    let known = exchange.inbox.count
    exchange.inbox.append(contentsOf: UnsafeRawBufferPointer(start: plain.start, count: seen))
    switch ProxyHeader.parse(exchange.inbox, proxies.version) {
    case .incomplete: take(seen, of: session)
    case .fault(let rule): refuseConnection(session, .malformedProxyHeader, rule)
    case .header(let header):
      exchange.inbox = []
      // No prefix of a header is one, so that its end is among what was seen now.
      guard take(header.length - known, of: session) else { return }
      if let source = header.source {
        exchange.address = source
        exchange.peer = Peer(address: source)
      }
      identified(session, exchange)
    }
  }

  /// Takes `count` bytes that were seen from the kernel; `false` if the session is gone.
  @discardableResult
  private func take(_ count: Int, of session: SessionRef) -> Bool {
    if recv(session.pointee.ends.pointee.link.fd, plain.start, count, 0) == count { return true }
    destroy(session)
    return false
  }

  /// A client that connects and sends nothing is a health check.
  private func prefaceEnded(_ session: SessionRef, _ exchange: Exchange) {
    guard exchange.inbox.isEmpty else {
      refuseConnection(session, .malformedProxyHeader, "the connection ended within the header")
      return
    }
    destroy(session)
  }

  func prefaceExpired(_ session: SessionRef) { refuseConnection(session, .slowProxyHeader) }

  private func refuseConnection(_ session: SessionRef, _ refusal: ConnectionRefusal, _ detail: String? = nil) {
    if let address = session.pointee.exchange?.address {
      service?.report(.connectionRefused(refusal, address: address, detail: detail))
    }
    destroy(session)
  }

  /// The client's address is known: it counts from now on, and TLS may begin.
  func identified(_ session: SessionRef, _ exchange: Exchange) {
    guard let service else { return }
    let block = AddressBlock(exchange.address)
    session.pointee.block = block
    if let limit = service.limits.connectionsPerAddress {
      session.pointee.place = service.connections.enter(block, atMost: limit)
      guard session.pointee.place != nil else {
        refuseConnection(session, .tooManyOfAddress)
        return
      }
    }
    if session.pointee.ends.pointee.link.tls == nil {
      startRequest(session)
    } else {
      session.pointee.phase = .handshake
      schedule(session, after: service.limits.handshakeTimeout)
    }
  }

  /// Starts to count connections that were opened before counting began. None is closed because of that.
  func countConnections(in service: SessionService) {
    guard service.limits.connectionsPerAddress != nil else { return }
    for slot in 0..<slots.end {
      guard let session = slots.token(in: slot).flatMap({ slots.session($0) }), session.pointee.place == nil,
        let block = session.pointee.block
      else { continue }
      session.pointee.place = service.connections.enter(block, atMost: .max)
    }
  }
}
