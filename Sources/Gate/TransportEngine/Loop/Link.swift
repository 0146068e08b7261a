internal import COpenSSL
internal import Glibc

/// One socket, with or without TLS: reads into and writes from the loop's shared buffers.
///
/// Plain data inside a session; only the loop that owns the session touches it.
struct Link {
  var fd: Int32 = -1
  var tls: OpaquePointer?
  /// What epoll watches for this socket.
  var interest: UInt32 = 0
  var outbox = Outbox()
  /// The peer will send no more.
  var hasEnded = false
  /// We will send no more once the outbox is empty.
  var endsAfterOutbox = false
  var hasSentEnd = false
  /// Why the connection is of no more use, once it is not.
  var failure: String?
  var lastHeard: Milliseconds = 0
  /// When the peer was last seen to take something of what had to wait for it.
  var lastTaken: Milliseconds = 0
  /// Bytes that waited for the peer when that was looked at last, here and in the kernel, and all that were sent since.
  private var offered = 0
  /// Bytes that the peer was seen to take when the outbox was drained, since that was asked last.
  private var drained = 0
  /// The error number of a write that met a peer who is gone; 0 if there was none.
  private var writeError: Int32 = 0
  /// The peer has reset the connection while it was not read.
  var isReset = false
  /// Messages that came behind the handshake, less one for each reception that held data alone.
  private var lateMessages = 0

  /// What may wait to be written to a peer that is read all the same. What the other end sends never comes so far,
  /// since that end is not read then; the answers to this peer's own Pings and key updates would.
  private static let outboxBound = 128 << 10

  /// New keys, or tickets of a server. An honest peer changes keys behind millions of records (RFC 8446 section 5.5);
  /// each change costs a derivation, and anybody can ask for one before any request.
  private static let lateMessageBound = 32

  var isOpen: Bool { fd >= 0 }
  /// Nothing is left to do for this end. One that may still speak is not closed behind what was sent last: if it did, or had
  /// done so unread, the kernel would reset the connection and throw away what it has not handed over (RFC 9293, 3.10.4).
  var isSpent: Bool { !isOpen || hasEnded && hasSentEnd }
  /// Whether the peer's end is its own wish: with TLS only its close_notify says so, since anybody can send a FIN.
  var endedInOrder: Bool {
    guard hasEnded, failure == nil else { return false }
    guard let tls else { return true }
    return SSL_get_shutdown(tls) & SSL_RECEIVED_SHUTDOWN != 0
  }
  /// There may be more to read, and room for what it makes us say.
  var mayRead: Bool { !hasEnded && outbox.count <= Self.outboxBound }
  var isHandshakeDone: Bool {
    guard let tls else { return true }
    return SSL_is_init_finished(tls) == 1
  }

  /// Gives everything back. The peer sees a reset if it sent what was not read, else an end.
  mutating func close() {
    if let tls { SSL_free(tls) }
    tls = nil
    outbox.removeAll()
    if fd >= 0 { Glibc.close(fd) }
    fd = -1
    failure = nil
  }
}

/// Room for plaintext: what was held back of the last chunk goes in front of the next one, so nothing is moved.
struct PlainBuffer {
  /// More than a held-back control frame: 14 bytes of header and 125 of payload.
  static let headroom = 256
  /// One `recv`, and what OpenSSL may have kept of a record.
  static let capacity = TLSWindow.incomingCapacity + (32 << 10)

  private let memory: UnsafeMutableRawPointer = .allocate(byteCount: headroom + capacity, alignment: 64)
  /// Where received bytes begin.
  var start: UnsafeMutableRawPointer { memory + Self.headroom }
  func deallocate() { memory.deallocate() }
}

/// What a socket had to say.
struct Reception {
  /// Bytes of plaintext in the loop's buffer.
  var count = 0
  /// No more will come; `Link.failure` says if that was not the peer's orderly wish.
  var ended = false
}

extension Link {
  /// Reads once and decrypts all that came. With TLS this also does the handshake.
  mutating func receive(into plain: UnsafeMutableRawPointer, through window: UnsafeMutablePointer<TLSWindow>)
    -> Reception
  {
    guard let got = fetch(into: tls == nil ? plain : window.pointee.incoming, TLSWindow.incomingCapacity) else {
      return Reception(count: 0, ended: hasEnded)
    }
    guard let tls else { return Reception(count: got) }
    window.pointee.incomingStart = 0
    window.pointee.incomingEnd = got
    let reception = decrypt(tls, into: plain, through: window)
    // Handshake flights, alerts and answers to key updates.
    if window.pointee.outgoingCount > 0 { flush(window) }
    return reception
  }

  /// Reads once, as it comes; how many bytes that were, `nil` if there were none or will be no more.
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

  /// Lets an end that a write found gone be read to its end: what the peer had said before waits in the kernel, which keeps
  /// it behind a reset. Nothing more is sent there. The failure comes back when there is nothing left to read.
  ///
  /// - Returns: whether that is so now; `false` where there is no such failure, where the end had been read already, and
  ///   when it is asked again.
  mutating func readsOn() -> Bool {
    guard writeError != 0, !hasEnded, !hasSentEnd, failure != nil else { return false }
    failure = nil
    isReset = true
    outbox.removeAll()
    endsAfterOutbox = false
    hasSentEnd = true
    return true
  }

  /// Reads once and throws it away.
  mutating func discardInput(into scratch: UnsafeMutableRawPointer) {
    let got = recv(fd, scratch, TLSWindow.incomingCapacity, 0)
    if got == 0 { hasEnded = true }
    if got < 0 && errno != EAGAIN && errno != EINTR {
      failure = SystemCallError.text(of: errno)
      hasEnded = true
    }
  }

  /// Decrypts what is in the window. What OpenSSL has to say to it is left there, for `flush`.
  mutating func decrypt(
    _ tls: OpaquePointer, into plain: UnsafeMutableRawPointer, through window: UnsafeMutablePointer<TLSWindow>
  ) -> Reception {
    var reception = Reception()
    let lateMessagesBefore = lateMessages
    window.pointee.isExhausted = false
    while reception.count < PlainBuffer.capacity {
      let read = SSL_read(tls, plain + reception.count, Int32(PlainBuffer.capacity - reception.count))
      if read > 0 {
        reception.count += Int(read)
        // Nothing came behind this record: asking again would only be told to wait.
        if window.pointee.incomingStart == window.pointee.incomingEnd && SSL_pending(tls) == 0 { break }
        continue
      }
      switch SSL_get_error(tls, read) {
      case SSL_ERROR_WANT_READ:
        // Not for want of input: OpenSSL has read a message that is its own, and there may be more.
        guard !window.pointee.isExhausted, isHandshakeDone else { break }
        lateMessages += 1
        if lateMessages <= Self.lateMessageBound { continue }
        failure = "TLS: too many handshake messages behind the handshake"
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

  /// Encrypts if need be, and hands as much to the kernel as it takes; the rest waits in the outbox.
  mutating func send(_ bytes: UnsafeRawBufferPointer, through window: UnsafeMutablePointer<TLSWindow>) {
    guard isOpen, failure == nil, !hasSentEnd, bytes.count > 0, let source = bytes.baseAddress else { return }
    guard let tls else {
      transmit(bytes)
      return
    }
    var sent = 0
    while sent < bytes.count {
      // One chunk of plaintext always fits the window.
      let written = SSL_write(tls, source + sent, Int32(min(bytes.count - sent, TLSWindow.incomingCapacity)))
      if written > 0 {
        sent += Int(written)
        if window.pointee.outgoingCount > TLSWindow.outgoingCapacity / 2 { flush(window) }
        continue
      }
      failure = OpenSSLError("TLS").description
      break
    }
    flush(window)
  }

  /// Starts a handshake that is ours to start.
  mutating func startHandshake(through window: UnsafeMutablePointer<TLSWindow>) {
    guard let tls else { return }
    window.pointee.incomingStart = 0
    window.pointee.incomingEnd = 0
    let result = SSL_do_handshake(tls)
    if result <= 0 && SSL_get_error(tls, result) != SSL_ERROR_WANT_READ {
      failure = OpenSSLError("TLS handshake").description
    }
    flush(window)
  }

  mutating func flush(_ window: UnsafeMutablePointer<TLSWindow>) {
    let count = window.pointee.outgoingCount
    window.pointee.outgoingCount = 0
    transmit(UnsafeRawBufferPointer(start: window.pointee.outgoing, count: count))
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

  /// Hands the kernel what has been waiting, and the end behind it if one is due.
  mutating func drainOutbox(through window: UnsafeMutablePointer<TLSWindow>) {
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
    if endsAfterOutbox { sendEnd(through: window) }
  }

  private mutating func writeFailed(_ code: Int32) {
    guard failure == nil else { return }
    failure = SystemCallError.text(of: code)
    // Others, such as a want of memory, say nothing of the peer.
    if code == ECONNRESET || code == EPIPE { writeError = code }
  }

  /// Notes whether a peer that has things waiting for it has taken anything since this was asked last. The kernel is asked
  /// as well: it may hold megabytes, and reports room only when there is a lot, for which a slow reader may take minutes.
  ///
  /// Where nothing waits nothing is noted: that the gate's own Pings were taken says that a kernel lives, and no more.
  ///
  /// - Returns: how many bytes it has taken.
  @discardableResult
  mutating func noteTaking(at now: Milliseconds) -> Int {
    let waiting = self.waiting
    let taken = max(0, offered - waiting)
    defer { (offered, drained) = (waiting, 0) }
    guard waiting > 0 else { return 0 }
    // What was taken with a drain has its own time.
    if taken > 0 { lastTaken = now }
    return taken + drained
  }

  /// Bytes that the peer has not taken, here and in the kernel.
  var waiting: Int {
    var queued: Int32 = 0
    _ = ioctl(fd, UInt(TIOCOUTQ), &queued)
    return outbox.count + Int(queued)
  }

  /// Says that nothing more will come from us, behind all that waits: close_notify and FIN. Reading goes on.
  mutating func sendEnd(through window: UnsafeMutablePointer<TLSWindow>) {
    guard isOpen, !hasSentEnd, failure == nil else { return }
    guard outbox.isEmpty else {
      endsAfterOutbox = true
      return
    }
    if let tls, isHandshakeDone, SSL_get_shutdown(tls) & SSL_SENT_SHUTDOWN == 0 {
      SSL_shutdown(tls)
      ERR_clear_error()
      flush(window)
      guard outbox.isEmpty else {
        endsAfterOutbox = true
        return
      }
    }
    shutdown(fd, Int32(SHUT_WR))
    hasSentEnd = true
  }
}
