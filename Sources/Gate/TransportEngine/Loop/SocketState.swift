internal import COpenSSL
internal import Glibc

/// One socket, with or without TLS. It reads into and writes from the loop's shared buffers.
///
/// Plain data inside a session; only the loop that owns the session touches it.
struct SocketState {
  var fd: Int32 = -1
  var tls: OpaquePointer?
  /// The events that epoll watches on this socket.
  var interest: UInt32 = 0
  var outbox = Outbox()
  /// Whether the peer sends no more.
  var hasEnded = false
  /// Whether the gate sends the end of its stream once the outbox is empty.
  var endsAfterOutbox = false
  var hasSentEnd = false
  /// Why the connection has failed; `nil` while it works.
  var failure: String?
  var lastHeard: Milliseconds = 0
  /// The last time at which the peer was seen to take pending bytes.
  var lastTaken: Milliseconds = 0
  /// The bytes that were pending at the last check, here and in the kernel, plus all bytes sent since.
  private var offered = 0
  /// The bytes that the peer took while the outbox was drained, since the last check.
  private var drained = 0
  /// The error number of a write to a peer that has closed or reset the connection; 0 if there was none.
  private var writeError: Int32 = 0
  /// Whether the peer reset the connection while it was not being read.
  var isReset = false
  /// TLS handshake messages after the handshake, minus one for each reception that contained only data.
  private var lateMessages = 0

  /// The bytes that may be pending while the peer is still read. The other peer's data never fills this much, because
  /// that peer is not read meanwhile; the responses to this peer's own Pings and key updates could.
  private static let outboxBound = 128 << 10

  /// The bound on `lateMessages`: key updates, or tickets from a server. An honest peer updates its keys after
  /// millions of records (RFC 8446 section 5.5). Each update costs a key derivation, and any client can ask
  /// for one before any request.
  private static let lateMessageBound = 32

  var isOpen: Bool { fd >= 0 }
  /// Whether nothing is left to do for this peer. A peer that may still send is not closed right after the
  /// last bytes: unread input would make the kernel reset the connection and discard what it has not
  /// delivered (RFC 9293, 3.10.4).
  var isFinished: Bool { !isOpen || hasEnded && hasSentEnd }
  /// Whether the peer itself ended its stream. With TLS only a close_notify proves that, because anyone
  /// on the path can send a FIN.
  var endedInOrder: Bool {
    guard hasEnded, failure == nil else { return false }
    guard let tls else { return true }
    return SSL_get_shutdown(tls) & SSL_RECEIVED_SHUTDOWN != 0
  }
  /// Whether the peer ended its stream with TLS but without close_notify. Such a stream may be truncated and its
  /// connection has failed (RFC 8446 section 6.1): the peer has left, and reads nothing more.
  var hasLeft: Bool { hasEnded && tls != nil && failure == nil && !endedInOrder }
  /// Whether the socket may be read: the peer may send more, and the outbox has room for the responses.
  var mayRead: Bool { !hasEnded && outbox.count <= Self.outboxBound }
  var isHandshakeDone: Bool {
    guard let tls else { return true }
    return SSL_is_init_finished(tls) == 1
  }

  /// Continues without TLS, of which nothing was sent yet.
  mutating func dropTLS() {
    if let tls { SSL_free(tls) }
    tls = nil
  }

  /// Releases everything. The peer sees a reset if it sent bytes that were not read, otherwise the end of the stream.
  mutating func close() {
    dropTLS()
    outbox.removeAll()
    if fd >= 0 { Glibc.close(fd) }
    fd = -1
    failure = nil
  }
}

/// The buffer for plaintext. Bytes that were held back from the last chunk go in front of the next one, so the
/// received bytes are never moved.
struct PlainBuffer {
  /// More than a control frame that is held back: 14 bytes of header and 125 of payload.
  static let headroom = 256
  /// One `recv` plus the part of a record that OpenSSL may have buffered.
  static let capacity = TLSBuffers.incomingCapacity + (32 << 10)

  private let memory: UnsafeMutableRawPointer = .allocate(byteCount: headroom + capacity, alignment: 64)
  /// The start of the received bytes.
  var start: UnsafeMutableRawPointer { memory + Self.headroom }
  func deallocate() { memory.deallocate() }
}

/// The result of reading a socket.
struct Reception {
  /// The number of plaintext bytes in the loop's buffer.
  var count = 0
  /// Whether no more will arrive. `SocketState.failure` is set if the end was not orderly.
  var ended = false
}

extension SocketState {
  /// Reads once and decrypts everything that arrived. With TLS it also advances the handshake.
  mutating func receive(into plain: UnsafeMutableRawPointer, through buffers: UnsafeMutablePointer<TLSBuffers>)
    -> Reception
  {
    guard let got = fetch(into: tls == nil ? plain : buffers.pointee.incoming, TLSBuffers.incomingCapacity) else {
      return Reception(count: 0, ended: hasEnded)
    }
    guard let tls else { return Reception(count: got) }
    buffers.pointee.incomingStart = 0
    buffers.pointee.incomingEnd = got
    let reception = decrypt(tls, into: plain, through: buffers)
    // Sends handshake flights, alerts and responses to key updates.
    if buffers.pointee.outgoingCount > 0 { flush(buffers) }
    return reception
  }

  /// Reads once without decrypting. Returns the number of bytes; `nil` if there are none now or the stream has ended.
  @inline(__always)
  mutating func fetch(into target: UnsafeMutableRawPointer, _ capacity: Int) -> Int? {
    let got = recv(fd, target, capacity, 0)
    if got > 0 { return got }
    if got < 0 {
      if errno == EAGAIN || errno == EINTR { return nil }
      failure = SystemCallError.text(of: errno)
    } else if writeError != 0 {
      failure = SystemCallError.text(of: writeError)
    }
    hasEnded = true
    return nil
  }

  /// Keeps reading from a peer after a write found that it is gone: the kernel still buffers the bytes that the peer
  /// sent before its reset. Nothing more is sent. The failure returns when everything has been read.
  ///
  /// - Returns: Whether this call started it; `false` if no write failed, if the stream has already
  ///   ended, and on later calls.
  mutating func readsOn() -> Bool {
    guard writeError != 0, !hasEnded, !hasSentEnd, failure != nil else { return false }
    failure = nil
    isReset = true
    outbox.removeAll()
    endsAfterOutbox = false
    hasSentEnd = true
    return true
  }

  /// Reads once and discards the bytes. Returns whether there were any.
  mutating func discardInput(into scratch: UnsafeMutableRawPointer) -> Bool {
    let got = recv(fd, scratch, TLSBuffers.incomingCapacity, 0)
    if got == 0 { hasEnded = true }
    if got < 0 && errno != EAGAIN && errno != EINTR {
      failure = SystemCallError.text(of: errno)
      hasEnded = true
    }
    return got > 0
  }

  /// Decrypts the bytes in the window. OpenSSL's responses stay in the window for `flush`.
  mutating func decrypt(
    _ tls: OpaquePointer, into plain: UnsafeMutableRawPointer, through buffers: UnsafeMutablePointer<TLSBuffers>
  ) -> Reception {
    var reception = Reception()
    let lateMessagesBefore = lateMessages
    buffers.pointee.isExhausted = false
    while reception.count < PlainBuffer.capacity {
      let read = SSL_read(tls, plain + reception.count, Int32(PlainBuffer.capacity - reception.count))
      if read > 0 {
        reception.count += Int(read)
        // The window is empty after this record: another call would only ask for more input.
        if buffers.pointee.incomingStart == buffers.pointee.incomingEnd && SSL_pending(tls) == 0 { break }
        continue
      }
      switch SSL_get_error(tls, read) {
      case SSL_ERROR_WANT_READ:
        guard !hasBegunRenegotiation(tls) else {
          failure = "TLS: renegotiation"
          reception.ended = true
          hasEnded = true
          break
        }
        // Input is left: OpenSSL has read a handshake message, and there may be more.
        guard !buffers.pointee.isExhausted, isHandshakeDone else { break }
        lateMessages += 1
        if lateMessages <= Self.lateMessageBound { continue }
        failure = "TLS: too many handshake messages after the handshake"
        reception.ended = true
        hasEnded = true
      case SSL_ERROR_ZERO_RETURN:
        reception.ended = true
        hasEnded = true
      default:
        failure = OpenSSLError(isHandshakeDone ? "TLS" : "TLS handshake").description
        reception.ended = true
        hasEnded = true
      }
      break
    }
    if lateMessages > 0, lateMessages == lateMessagesBefore, reception.count > 0 { lateMessages -= 1 }
    return reception
  }

  /// Whether the peer has begun another handshake of TLS 1.2. OpenSSL refuses one when it has read the whole ClientHello,
  /// and reserves the length that its first bytes announce, up to 175 KB, until then.
  private func hasBegunRenegotiation(_ tls: OpaquePointer) -> Bool {
    !isHandshakeDone && SSL_version(tls) < TLS1_3_VERSION && SSL_get_peer_finished(tls, nil, 0) > 0
  }

  /// Encrypts if TLS is used and passes as much to the kernel as it takes; the rest waits in the outbox.
  mutating func send(_ bytes: UnsafeRawBufferPointer, through buffers: UnsafeMutablePointer<TLSBuffers>) {
    guard isOpen, failure == nil, !hasSentEnd, bytes.count > 0, let source = bytes.baseAddress else { return }
    guard let tls else {
      transmit(bytes)
      return
    }
    var sent = 0
    while sent < bytes.count {
      // One chunk of plaintext always fits the window.
      let written = SSL_write(tls, source + sent, Int32(min(bytes.count - sent, TLSBuffers.incomingCapacity)))
      if written > 0 {
        sent += Int(written)
        if buffers.pointee.outgoingCount > TLSBuffers.outgoingCapacity / 2 { flush(buffers) }
        continue
      }
      failure = OpenSSLError("TLS").description
      break
    }
    flush(buffers)
  }

  /// Starts the handshake of a client connection.
  mutating func startHandshake(through buffers: UnsafeMutablePointer<TLSBuffers>) {
    guard let tls else { return }
    buffers.pointee.incomingStart = 0
    buffers.pointee.incomingEnd = 0
    let result = SSL_do_handshake(tls)
    if result <= 0 && SSL_get_error(tls, result) != SSL_ERROR_WANT_READ {
      failure = OpenSSLError("TLS handshake").description
    }
    flush(buffers)
  }

  /// Sends a record that asks for nothing: new keys for what follows (RFC 8446 section 4.6.3).
  mutating func sendKeyUpdate(through buffers: UnsafeMutablePointer<TLSBuffers>) {
    guard let tls, isOpen, failure == nil, !hasSentEnd else { return }
    buffers.pointee.incomingStart = 0
    buffers.pointee.incomingEnd = 0
    guard SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, SSL_do_handshake(tls) == 1 else {
      failure = OpenSSLError("TLS").description
      return
    }
    flush(buffers)
  }

  mutating func flush(_ buffers: UnsafeMutablePointer<TLSBuffers>) {
    let count = buffers.pointee.outgoingCount
    buffers.pointee.outgoingCount = 0
    transmit(UnsafeRawBufferPointer(start: buffers.pointee.outgoing, count: count))
  }

  private mutating func transmit(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count > 0, !hasSentEnd else { return }
    offered &+= bytes.count
    var taken = 0
    if outbox.isEmpty {
      taken = Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if taken < 0 {
        guard errno == EAGAIN || errno == EINTR else {
          writeFailed(errno)
          return
        }
        taken = 0
      }
    }
    guard taken < bytes.count else { return }
    let isFirst = outbox.isEmpty
    outbox.append(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
    if isFirst { offered = waiting }
  }

  /// Passes pending bytes to the kernel, then the end of the stream if it is due.
  mutating func drainOutbox(through buffers: UnsafeMutablePointer<TLSBuffers>) {
    if !outbox.isEmpty && failure == nil {
      let waiting = outbox.bytes
      let taken = Glibc.send(fd, waiting.baseAddress, waiting.count, Int32(MSG_NOSIGNAL))
      if taken > 0 {
        outbox.removeFirst(taken)
        let waiting = self.waiting
        drained &+= max(0, offered - waiting)
        offered = waiting
      } else if taken < 0 && errno != EAGAIN && errno != EINTR {
        writeFailed(errno)
      }
    }
    if endsAfterOutbox { sendEnd(through: buffers) }
  }

  private mutating func writeFailed(_ code: Int32) {
    guard failure == nil else { return }
    failure = SystemCallError.text(of: code)
    // Other errors, such as lack of memory, say nothing about the peer.
    if code == ECONNRESET || code == EPIPE { writeError = code }
  }

  /// Records whether the peer has taken any pending bytes since the last call. It also asks the kernel, which may
  /// buffer megabytes and reports room only in large steps; a slow reader may need minutes for one.
  ///
  /// Records nothing if nothing is pending: that the gate's own Pings were taken only shows that
  /// the peer's kernel is alive.
  ///
  /// - Returns: The number of bytes that the peer has taken.
  @discardableResult
  mutating func noteTaking(at now: Milliseconds) -> Int {
    let waiting = self.waiting
    let taken = max(0, offered - waiting)
    defer { (offered, drained) = (waiting, 0) }
    guard waiting > 0 else { return 0 }
    // Bytes taken during a drain of the outbox have their own timestamp.
    if taken > 0 { lastTaken = now }
    return taken + drained
  }

  /// The number of bytes that the peer has not taken, here and in the kernel.
  var waiting: Int {
    var queued: Int32 = 0
    _ = ioctl(fd, UInt(TIOCOUTQ), &queued)
    return outbox.count + Int(queued)
  }

  /// Sends the end of the stream after all pending bytes: close_notify and FIN. Reading continues.
  mutating func sendEnd(through buffers: UnsafeMutablePointer<TLSBuffers>) {
    guard isOpen, !hasSentEnd, failure == nil else { return }
    guard outbox.isEmpty else {
      endsAfterOutbox = true
      return
    }
    if hasLeft {
      hasSentEnd = true
      return
    }
    if let tls, isHandshakeDone, SSL_get_shutdown(tls) & SSL_SENT_SHUTDOWN == 0 {
      SSL_shutdown(tls)
      ERR_clear_error()
      flush(buffers)
      guard outbox.isEmpty else {
        endsAfterOutbox = true
        return
      }
    }
    shutdown(fd, Int32(SHUT_WR))
    hasSentEnd = true
  }
}
