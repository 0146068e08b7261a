internal import COpenSSL
internal import Locking

/// Unpredictable bytes from OpenSSL's generator, which the kernel seeds.
public enum SecureRandom {
  /// Returns `count` random bytes.
  ///
  /// Terminates the process if the generator cannot be seeded: nonces and keys made without it could be guessed, and
  /// no caller could do anything about it.
  public static func bytes(_ count: Int) -> [UInt8] {
    guard count <= mostBuffered else { return generate(count) }
    return buffer.withLock { buffer in
      if buffer.count < count { buffer = generate(bufferSize) }
      let start = buffer.count - count
      let bytes = Array(buffer[start...])
      // Nothing that was given out stays in memory here.
      for index in start..<buffer.count { buffer[index] = 0 }
      buffer.removeLast(count)
      return bytes
    }
  }

  // OpenSSL needs longer to begin than to make a few bytes, and asks for the process id each time: it would notice a
  // fork. This process never goes on after a fork without exec(3).
  private static let mostBuffered = 32
  private static let bufferSize = 1024
  private static let buffer = LockedValue<[UInt8]>([])

  private static func generate(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { output, written in
      guard RAND_bytes(output.baseAddress, Int32(count)) == 1 else {
        fatalError("no random bytes: \(OpenSSLErrors.take())")
      }
      written = count
    }
  }
}
