internal import Cryptography
public import Foundation

/// As much of CryptoKit as the guide uses.
public enum SHA256 {
  /// The digest's bytes; CryptoKit's own type is a sequence of these as well.
  public static func hash(data: Data) -> [UInt8] { Cryptography.SHA256.hash([UInt8](data)) }
}
