internal import COpenSSL

/// Unpredictable bytes from OpenSSL's generator, which the kernel seeds.
public enum SecureRandom {
  /// `count` random bytes.
  ///
  /// Ends the process if the generator cannot be seeded: every nonce and key made without it could be guessed, so there
  /// is nothing that a caller could rightly do instead.
  public static func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { output, written in
      guard RAND_bytes(output.baseAddress, Int32(count)) == 1 else {
        fatalError("no random bytes: \(OpenSSLErrors.take())")
      }
      written = count
    }
  }
}
