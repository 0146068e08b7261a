extension [UInt8] {
  /// Creates an array of the bytes that `body` writes, `capacity` at most. `body` returns their number.
  ///
  /// With `init(unsafeUninitializedCapacity:initializingWith:)`, each array costs some hundred instructions more to look
  /// up its type.
  @inlinable
  @inline(__always)
  public init(upTo capacity: Int, writtenBy body: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
    self = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { memory in
      Array(UnsafeBufferPointer(rebasing: memory[..<body(memory)]))
    }
  }
}
