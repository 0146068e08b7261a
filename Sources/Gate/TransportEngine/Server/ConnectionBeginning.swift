internal import Transport

/// Begins a connection whose client is known: by its own address, or by that in a PROXY header.
extension EventLoop {
  /// Counts the connection for the client's address, which is known now, and starts TLS or HTTP.
  func beginConnection(_ session: SessionRef, _ http: HTTPConnection) {
    guard let service else { return }
    let block = AddressBlock(http.address)
    session.pointee.block = block
    if let limit = service.limits.connectionsPerAddress {
      session.pointee.place = service.connections.enter(block, atMost: limit)
      guard session.pointee.place != nil else {
        refuseConnection(session, .tooManyOfAddress)
        return
      }
    }
    if session.pointee.ends.pointee.socket.tls == nil {
      startRequest(session)
    } else {
      session.pointee.phase = .handshake
      schedule(session, after: service.limits.handshakeTimeout)
    }
  }

  /// Makes room for one more connection if the loop has a limit of them. Returns `false` if there is none, because twice
  /// as many have a request in work.
  func makeRoom(in service: SessionService) -> Bool {
    guard let most = service.limits.connectionsPerLoop, sessionCount >= most else { return true }
    let waiting = (0..<slots.end).lazy.compactMap { self.slots.token(in: $0).flatMap { self.slots.session($0) } }
      .filter(\.pointee.phase.waitsForClient)
    guard let idlest = waiting.min(by: { $0.pointee.waitOrder < $1.pointee.waitOrder }) else {
      return sessionCount < 2 * most
    }
    destroy(idlest)
    return true
  }

  /// Reports why the connection is refused, and closes it without an answer.
  func refuseConnection(_ session: SessionRef, _ refusal: ConnectionRefusal, _ detail: String? = nil) {
    if let address = session.pointee.http?.address {
      service?.report(.connectionRefused(refusal, address: address, detail: detail))
    }
    destroy(session)
  }

  /// Counts the open connections that are not counted yet, after a limit was configured. None of them is closed.
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
