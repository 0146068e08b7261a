extension Collection<UInt8> {
  /// Returns the result of `body` for these bytes in one piece.
  ///
  /// Loops over bytes run inside `body`. Over a generic collection each step would be a call, and all of them
  /// together would cost as much as the verification of a signature.
  @inlinable
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    withContiguousStorageIfAvailable(body) ?? Array(self).withUnsafeBufferPointer(body)
  }
}
