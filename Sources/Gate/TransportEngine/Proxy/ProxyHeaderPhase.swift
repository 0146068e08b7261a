internal import Glibc
internal import Transport

/// Reads the PROXY header, which names the client behind a proxy.
extension EventLoop {
  /// Peeks at the input first and takes only the header from the kernel: the bytes after it belong to TLS.
  func proxyHeaderReadable(_ session: SessionRef) {
    guard let http = session.pointee.http, let proxies = service?.proxies else { return }
    let fd = session.pointee.ends.pointee.socket.fd
    let seen = recv(fd, plain.start, ProxyHeader.longest, Int32(MSG_PEEK))
    guard seen > 0 else {
      if seen == 0 || errno != EAGAIN && errno != EINTR { proxyHeaderEnded(session, http) }
      return
    }
    let known = http.inbox.count
    http.inbox.append(contentsOf: UnsafeRawBufferPointer(start: plain.start, count: seen))
    switch ProxyHeader.parse(http.inbox, proxies.version) {
    case .incomplete: take(seen, of: session)
    case .fault(let rule): refuseConnection(session, .malformedProxyHeader, rule)
    case .header(let header):
      http.inbox = []
      // No proper prefix of a header is a header, so its end is among the bytes just peeked at.
      guard take(header.length - known, of: session) else { return }
      if let source = header.source {
        http.address = source
        http.peer = Peer(address: source, endpoint: header.endpoint)
      }
      beginConnection(session, http)
    }
  }

  /// Takes `count` peeked bytes from the kernel; destroys the session and returns `false` if that fails.
  @discardableResult
  private func take(_ count: Int, of session: SessionRef) -> Bool {
    if recv(session.pointee.ends.pointee.socket.fd, plain.start, count, 0) == count { return true }
    destroy(session)
    return false
  }

  /// Handles the end of the stream. A connection that sent nothing is a health check and is not reported.
  private func proxyHeaderEnded(_ session: SessionRef, _ http: HTTPConnection) {
    guard http.inbox.isEmpty else {
      refuseConnection(session, .malformedProxyHeader, "the connection was closed inside the header")
      return
    }
    destroy(session)
  }

  func prefaceExpired(_ session: SessionRef) { refuseConnection(session, .slowProxyHeader) }
}
