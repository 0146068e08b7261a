internal import COpenSSL

/// Unpredictable bytes from OpenSSL's generator, which the kernel seeds.
public enum SecureRandom {
  /// Returns `count` random bytes.
  ///
  /// Terminates the process if the generator cannot be seeded: nonces and keys made without it could be guessed, and
  /// no caller could do anything about it.
  public static func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { output, written in
      guard RAND_bytes(output.baseAddress, Int32(count)) == 1 else {
        fatalError("no random bytes: \(OpenSSLErrors.take())")
      }
      written = count
    }
  }
}
