internal import Crypto
public import Foundation

/// The key of a vault: 256 random bits.
///
/// It is made once, for the first vault of a user, and never derived from a passphrase: slots hold it under a
/// passphrase, and on Apple's platforms it is an item of the keychain.
public struct VaultKey: Sendable, Hashable {
  /// The number of bytes.
  public static let length = 32

  let symmetric: SymmetricKey

  /// Makes a key from the system's random numbers.
  public init() { symmetric = SymmetricKey(size: .bits256) }

  /// The key with these bytes; `nil` unless there are 32.
  public init?(bytes: some ContiguousBytes) {
    let key = SymmetricKey(data: bytes)
    guard key.bitCount == Self.length * 8 else { return nil }
    symmetric = key
  }

  /// The 32 bytes.
  public var bytes: [UInt8] { symmetric.withUnsafeBytes { Array($0) } }

  /// Names the key without revealing it: 16 hexadecimal digits of an HMAC-SHA256 under it.
  public var id: String {
    let name = Array("sallyport authenticator key".utf8)
    return HMAC<SHA256>.authenticationCode(for: name, using: symmetric).prefix(8)
      .map { byte in String(byte >> 4, radix: 16) + String(byte & 15, radix: 16) }.joined()
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// AES-256-GCM in the combined form: a 12-byte nonce, the ciphertext, and the 16-byte tag (NIST SP 800-38D).
///
/// Each sealing takes a new random nonce. No caller can choose one.
public enum CombinedBox {
  /// Encrypts `plaintext` and authenticates `header` with it.
  public static func seal(_ plaintext: Data, header: Data = Data(), with key: VaultKey) -> Data {
    do {
      let box = try AES.GCM.seal(plaintext, using: key.symmetric, authenticating: header)
      // `combined` is nil only for a nonce of another length than 12.
      return box.combined ?? Data(box.nonce) + box.ciphertext + box.tag
    } catch {
      // AES-GCM refuses only lengths beyond 64 GiB.
      preconditionFailure("AES-GCM failed: \(error)")
    }
  }

  /// Decrypts what `seal` returned.
  ///
  /// - Throws: `.notAuthentic` if a byte of `combined` or `header` is different, or the key is.
  public static func open(_ combined: Data, header: Data = Data(), with key: VaultKey) throws(VaultError) -> Data {
    do {
      return try AES.GCM.open(AES.GCM.SealedBox(combined: combined), using: key.symmetric, authenticating: header)
    } catch {
      throw .notAuthentic
    }
  }
}

extension Vault {
  /// The vault as a synchronizing store carries it: its JSON in the combined form, without a header.
  public func sealed(with key: VaultKey) -> Data { CombinedBox.seal(json(), with: key) }

  /// Opens what `sealed` returned.
  ///
  /// - Throws: `.notAuthentic`; `.unknownVersion` and `.malformed`, as `init(json:)` does.
  public init(sealed: Data, with key: VaultKey) throws(VaultError) {
    try self.init(json: CombinedBox.open(sealed, with: key))
  }
}
