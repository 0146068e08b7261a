internal import COpenSSL

/// A `BIO` in memory, from which OpenSSL reads text or to which it writes text.
final class MemoryBIO {
  private let handle: OpaquePointer

  /// An empty one, to write to.
  init() throws(CryptographyError) {
    OpenSSLErrors.clear()
    guard let handle = BIO_new(BIO_s_mem()) else {
      throw .operationFailed("BIO_new", reason: OpenSSLErrors.take())
    }
    self.handle = handle
  }

  /// Creates a BIO that reads `bytes` and then reports the end.
  convenience init(reading bytes: [UInt8]) throws(CryptographyError) {
    try self.init()
    guard bytes.isEmpty || withPointer({ BIO_write($0, bytes, Int32(clamping: bytes.count)) }) == bytes.count else {
      throw .operationFailed("BIO_write", reason: OpenSSLErrors.take())
    }
  }

  deinit { BIO_free(handle) }

  /// Calls `body` with the `BIO`, which is valid until `body` returns and must not leave it.
  func withPointer<Result, Failure: Error>(
    _ body: (OpaquePointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in try body(handle) }
  }

  /// Removes and returns all written bytes.
  func take() -> [UInt8] {
    withPointer { bio in
      let count = BIO_ctrl_pending(bio)
      return [UInt8](unsafeUninitializedCapacity: count) { output, written in
        written = Int(max(0, BIO_read(bio, output.baseAddress, Int32(clamping: count))))
      }
    }
  }
}
