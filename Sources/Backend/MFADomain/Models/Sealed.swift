/// A value that only the vault can read: encrypted and authenticated, with the number of its key in front.
public struct Sealed: Sendable, Hashable {
  public let bytes: [UInt8]

  public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// A key that data is sealed under or codes are hashed with, itself sealed under a key-encryption key of the
/// operator's.
public struct DataKey: Sendable, Hashable {
  public enum Purpose: String, Sendable, CaseIterable {
    /// Encrypts telephone numbers, addresses and shared secrets.
    case fields
    /// Hashes one-time codes, backup codes and trust tokens.
    case codes
    /// Makes refresh tokens.
    case refresh
    /// Signs access tokens.
    case tokens
    /// Authenticates the entries of the history.
    case history
  }

  public let number: UInt32
  public let purpose: Purpose
  /// The name of the key-encryption key that it is sealed under.
  public var wrappedBy: String
  /// 12 bytes of nonce, 32 of ciphertext, 16 of tag.
  public var wrapped: [UInt8]

  public init(number: UInt32, purpose: Purpose, wrappedBy: String, wrapped: [UInt8]) {
    self.number = number
    self.purpose = purpose
    self.wrappedBy = wrappedBy
    self.wrapped = wrapped
  }
}
