internal import COpenSSL

/// SHA-256 (FIPS 180-4): digests of 32 bytes.
public enum SHA256 {
  /// The size of a digest in bytes.
  public static let digestSize = 32

  /// Returns the digest of `parts`, joined.
  public static func hash(_ parts: [UInt8]...) -> [UInt8] {
    parts.count == 1 ? DigestAlgorithm.sha256.hash(parts[0]) : DigestAlgorithm.sha256.hash(Array(parts.joined()))
  }

  /// The digest of `slice`.
  public static func hash(_ slice: ArraySlice<UInt8>) -> [UInt8] { DigestAlgorithm.sha256.hash(slice) }
}

/// A digest as OpenSSL knows it, fetched once: fetching costs more than hashing a short message.
struct DigestAlgorithm: @unchecked Sendable {  // an EVP_MD is constant and lives as long as the process
  let method: OpaquePointer

  static let sha256 = DigestAlgorithm("SHA256")
  static let sha384 = DigestAlgorithm("SHA384")

  func hash(_ message: some Collection<UInt8>) -> [UInt8] {
    let size = Int(EVP_MD_get_size(method))
    return [UInt8](unsafeUninitializedCapacity: size) { output, count in
      let isDone: Bool? = message.withContiguousStorageIfAvailable { input in
        EVP_Digest(input.baseAddress, input.count, output.baseAddress, nil, method, nil) == 1
      }
      // Arrays and their slices are contiguous. Hashing can fail only for lack of memory, and then Swift cannot
      // continue either.
      guard isDone == true else { fatalError("no digest: \(OpenSSLErrors.take())") }
      count = size
    }
  }

  private init(_ name: String) {
    // Both digests are in OpenSSL's default provider, without which it could not start at all.
    guard let method = EVP_MD_fetch(nil, name, nil) else {
      fatalError("OpenSSL lacks \(name): \(OpenSSLErrors.take())")
    }
    self.method = method
  }
}
