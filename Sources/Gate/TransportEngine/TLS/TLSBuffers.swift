internal import COpenSSL
internal import Glibc

/// The ciphertext buffers that one thread lends to the connection that it is serving: received
/// bytes and bytes to send.
///
/// OpenSSL reads and writes through a BIO over these buffers. A wake-up costs one `recv` and one `send`, however many
/// records there are, and an idle connection owns no buffer.
struct TLSBuffers {
  /// The ciphertext of one `recv`.
  static let incomingCapacity = 64 << 10
  /// Room for the records of one full chunk of plaintext, or for a handshake flight.
  static let outgoingCapacity = 192 << 10

  let incoming: UnsafeMutableRawPointer
  var incomingStart = 0
  var incomingEnd = 0
  /// Whether OpenSSL has asked for more bytes than there are.
  var isExhausted = false
  /// Whether OpenSSL gets no more input once it has produced output. It reads one record at a time
  /// (`SSL_CTX_set_read_ahead` is off), so the rest begins with a record.
  var haltsBehindAnswer = false
  let outgoing: UnsafeMutableRawPointer
  var outgoingCount = 0

  init() {
    incoming = .allocate(byteCount: Self.incomingCapacity, alignment: 64)
    outgoing = .allocate(byteCount: Self.outgoingCapacity, alignment: 64)
  }

  /// The bytes that OpenSSL has not read yet.
  var unread: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: incoming + incomingStart, count: incomingEnd - incomingStart)
  }

  func deallocate() {
    incoming.deallocate()
    outgoing.deallocate()
  }
}

/// The BIO of a thread. Every `SSL` of the thread shares it, because only one is served at a time.
struct BufferBIO {
  let buffers: UnsafeMutablePointer<TLSBuffers>
  let bio: OpaquePointer

  init() {
    buffers = .allocate(capacity: 1)
    buffers.initialize(to: TLSBuffers())
    guard let bio = BIO_new(Self.method) else { fatalError("out of memory") }  // OpenSSL fails here only without memory
    BIO_set_data(bio, buffers)
    BIO_set_init(bio, 1)
    self.bio = bio
  }

  func deallocate() {
    BIO_free(bio)
    buffers.pointee.deallocate()
    buffers.deallocate()
  }

  /// Connects `ssl` to these buffers in both directions.
  func attach(to ssl: OpaquePointer) {
    // One reference serves both directions: SSL_set_bio takes no second one if both are the same BIO.
    BIO_up_ref(bio)
    SSL_set_bio(ssl, bio, bio)
  }

  // Created once, before any thread uses it, and never changed.
  private nonisolated(unsafe) static let method: OpaquePointer = {
    guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sallyport buffers") else {
      fatalError("out of memory")  // OpenSSL fails here only without memory
    }
    BIO_meth_set_read(method, readWindow)
    BIO_meth_set_write(method, writeWindow)
    BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return method
  }()
}

/// `BIO_FLAGS_RWS` and `BIO_FLAGS_SHOULD_RETRY`: Swift does not import a macro made of macros.
private let transferFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY

private func readWindow(bio: OpaquePointer?, into target: UnsafeMutablePointer<CChar>?, count: Int32) -> Int32 {
  guard let target, let buffers = BIO_get_data(bio)?.assumingMemoryBound(to: TLSBuffers.self) else { return -1 }
  let available = buffers.pointee.incomingEnd - buffers.pointee.incomingStart
  guard available > 0, !(buffers.pointee.haltsBehindAnswer && buffers.pointee.outgoingCount > 0) else {
    buffers.pointee.isExhausted = true
    BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    return -1
  }
  BIO_clear_flags(bio, transferFlags)
  let taken = min(available, Int(count))
  memcpy(target, buffers.pointee.incoming + buffers.pointee.incomingStart, taken)
  buffers.pointee.incomingStart += taken
  return Int32(taken)
}

private func writeWindow(bio: OpaquePointer?, from source: UnsafePointer<CChar>?, count: Int32) -> Int32 {
  guard let source, let buffers = BIO_get_data(bio)?.assumingMemoryBound(to: TLSBuffers.self) else { return -1 }
  let used = buffers.pointee.outgoingCount
  guard used + Int(count) <= TLSBuffers.outgoingCapacity else {
    BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    return -1
  }
  BIO_clear_flags(bio, transferFlags)
  memcpy(buffers.pointee.outgoing + used, source, Int(count))
  buffers.pointee.outgoingCount = used + Int(count)
  return count
}
