internal import ByteCoding
internal import COpenSSL
internal import Locking

/// SHA-256 (FIPS 180-4): digests of 32 bytes.
public enum SHA256 {
  /// The size of a digest in bytes.
  public static let digestSize = 32

  /// Returns the digest of `parts`, joined.
  public static func hash(_ parts: [UInt8]...) -> [UInt8] {
    DigestAlgorithm.sha256.hash { update in
      for part in parts { part.withUnsafeBufferPointer(update) }
    }
  }

  /// The digest of `slice`.
  public static func hash(_ slice: ArraySlice<UInt8>) -> [UInt8] {
    DigestAlgorithm.sha256.hash { update in slice.withUnsafeBufferPointer(update) }
  }
}

/// A digest as OpenSSL knows it, fetched once: fetching costs more than hashing a short message.
final class DigestAlgorithm: @unchecked Sendable {  // an EVP_MD is constant and lives as long as the process
  let method: OpaquePointer
  private let size: Int
  /// An unused context. Making one costs more than hashing a short message, too.
  private let spare = LockedValue<DigestContext?>(nil)

  static let sha256 = DigestAlgorithm("SHA256")
  static let sha384 = DigestAlgorithm("SHA384")
  static let sha512 = DigestAlgorithm("SHA512")

  func hash(_ message: [UInt8]) -> [UInt8] {
    hash { update in message.withUnsafeBufferPointer(update) }
  }

  /// The digest of all bytes that `body` passes on, in their order. Any number of threads may hash at once.
  func hash(_ body: ((UnsafeBufferPointer<UInt8>) -> Void) -> Void) -> [UInt8] {
    let found = spare.withLock { spare in
      defer { spare = nil }
      return spare
    }
    // Hashing can fail only for lack of memory, and then Swift cannot continue either.
    guard let context = found ?? DigestContext() else { fatalError("no digest: \(OpenSSLErrors.take())") }
    defer { spare.withLock { $0 = context } }
    var isDone = EVP_DigestInit_ex(context.handle, method, nil) == 1
    body { bytes in
      isDone = EVP_DigestUpdate(context.handle, bytes.baseAddress, bytes.count) == 1 && isDone
    }
    let digest = [UInt8](upTo: size) { output in
      isDone = EVP_DigestFinal_ex(context.handle, output.baseAddress, nil) == 1 && isDone
      return size
    }
    guard isDone else { fatalError("no digest: \(OpenSSLErrors.take())") }
    return digest
  }

  private init(_ name: String) {
    // All digests are in OpenSSL's default provider, without which it could not start at all.
    guard let method = EVP_MD_fetch(nil, name, nil) else {
      fatalError("OpenSSL lacks \(name): \(OpenSSLErrors.take())")
    }
    self.method = method
    size = Int(EVP_MD_get_size(method))
  }
}

/// An `EVP_MD_CTX`. One thread at a time uses it: the one that took it out of `DigestAlgorithm.spare`, or made it.
private final class DigestContext: @unchecked Sendable {
  let handle: OpaquePointer

  init?() {
    guard let handle = EVP_MD_CTX_new() else { return nil }
    self.handle = handle
  }

  deinit { EVP_MD_CTX_free(handle) }
}
