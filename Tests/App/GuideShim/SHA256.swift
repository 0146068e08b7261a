internal import Cryptography
public import Foundation

/// The part of CryptoKit that the guide uses.
public enum SHA256 {
  /// Returns the bytes of the digest. The digest type of CryptoKit is also a sequence of bytes.
  public static func hash(data: Data) -> [UInt8] { Cryptography.SHA256.hash([UInt8](data)) }
}
