extension OutputSpan<UInt8> {
  /// Appends `bytes`, for which there must be room.
  ///
  /// With `Array.append(addingCapacity:initializingWith:)`, a line of several pieces costs one check of the array's
  /// capacity and owner instead of one for each piece.
  @inlinable
  @inline(__always)
  public mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    withUnsafeMutableBufferPointer { memory, count in
      precondition(bytes.count <= memory.count - count, "no room for \(bytes.count) bytes")
      guard let start = memory.baseAddress, let source = bytes.baseAddress else { return }
      (start + count).initialize(from: source, count: bytes.count)
      count += bytes.count
    }
  }

  /// Appends `text`, for which there must be room.
  @inlinable
  @inline(__always)
  public mutating func append(_ text: StaticString) {
    append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
