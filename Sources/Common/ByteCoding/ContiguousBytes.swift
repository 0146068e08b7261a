extension Collection<UInt8> {
  /// What `body` makes of these bytes in one piece.
  ///
  /// What is done byte by byte is done in there: over a collection of an unknown kind each step would be a call, and as
  /// much again as the verification of a signature in all.
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    withContiguousStorageIfAvailable(body) ?? Array(self).withUnsafeBufferPointer(body)
  }
}
