internal import COpenSSL

/// A `BIO` over memory: what OpenSSL reads text from and writes text to.
final class MemoryBIO {
  let handle: OpaquePointer

  /// An empty one, to write to.
  init() throws(CryptographyError) {
    OpenSSLErrors.clear()
    guard let handle = BIO_new(BIO_s_mem()) else {
      throw .operationFailed("BIO_new", reason: OpenSSLErrors.take())
    }
    self.handle = handle
  }

  /// One that yields `bytes` and then the end.
  convenience init(reading bytes: [UInt8]) throws(CryptographyError) {
    try self.init()
    guard bytes.isEmpty || BIO_write(handle, bytes, Int32(clamping: bytes.count)) == bytes.count else {
      throw .operationFailed("BIO_write", reason: OpenSSLErrors.take())
    }
  }

  deinit { BIO_free(handle) }

  /// All that was written, which is thereby taken out.
  func take() -> [UInt8] {
    let count = BIO_ctrl_pending(handle)
    return [UInt8](unsafeUninitializedCapacity: count) { output, written in
      written = Int(max(0, BIO_read(handle, output.baseAddress, Int32(clamping: count))))
    }
  }
}
