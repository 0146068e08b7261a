#if canImport(CryptoKit)
  internal import CryptoKit
#else
  internal import Crypto
#endif

/// The hash function of the HMAC beneath one-time passwords (RFC 6238 section 1.2).
public enum TOTPAlgorithm: String, Sendable, Hashable, Codable, CaseIterable {
  /// SHA-1: what RFC 4226 requires, and what authenticator apps assume.
  case sha1 = "SHA1"
  /// SHA-256.
  case sha256 = "SHA256"
  /// SHA-512.
  case sha512 = "SHA512"

  /// Finds an algorithm by its name, in any case and with or without `HMAC` and dashes: `sha256`, `HmacSHA256`, `SHA-256`.
  ///
  /// No name has more than 32 bytes.
  public init?(name: String) {
    guard name.utf8.count <= 32 else { return nil }
    var name = name.uppercased().filter { $0 != "-" }
    if name.hasPrefix("HMAC") { name.removeFirst(4) }
    self.init(rawValue: name)
  }

  /// The length of the hash in bytes, and of a secret that is as strong as it: 20, 32 or 64.
  public var hashLength: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha512: 64
    }
  }

  func authenticationCode(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    let key = SymmetricKey(data: key)
    return switch self {
    case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key))
    case .sha256: Array(HMAC<SHA256>.authenticationCode(for: message, using: key))
    case .sha512: Array(HMAC<SHA512>.authenticationCode(for: message, using: key))
    }
  }
}
