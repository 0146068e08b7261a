internal import ByteCoding
internal import Crypto
public import Foundation

/// The key under which a store encrypts: 256 random bits.
public struct TokenKey: Sendable, Hashable {
  let symmetric: SymmetricKey

  /// Makes a key.
  public init() { symmetric = SymmetricKey(size: .bits256) }

  /// The key with these bytes; `nil` unless there are 32.
  public init?(bytes: some ContiguousBytes) {
    symmetric = SymmetricKey(data: bytes)
    guard symmetric.bitCount == 256 else { return nil }
  }

  /// The 32 bytes.
  public var bytes: [UInt8] { symmetric.withUnsafeBytes { Array($0) } }

  /// Names the key without revealing it: 16 hexadecimal digits of an HMAC-SHA256 under it.
  var id: String {
    let name = Array("sallyport token key".utf8)
    return Hex.encode(Array(HMAC<SHA256>.authenticationCode(for: name, using: symmetric).prefix(8)))
  }

  /// Encrypts `plaintext` with AES-256-GCM in the combined form under a new random nonce, and authenticates `header`.
  func seal(_ plaintext: Data, header: Data) -> Data? {
    try? AES.GCM.seal(plaintext, using: symmetric, authenticating: header).combined
  }

  /// Decrypts what `seal` returned; `nil` if a byte of it, of the header or of the key is another.
  func open(_ combined: Data, header: Data) -> Data? {
    guard let box = try? AES.GCM.SealedBox(combined: combined) else { return nil }
    return try? AES.GCM.open(box, using: symmetric, authenticating: header)
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension TokenKey: CustomStringConvertible, CustomReflectable {
  /// The name of the key.
  public var description: String { id }
  /// No members.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Where a store's key is kept.
public protocol TokenKeySource: Sendable {
  /// The key; `nil` if none was ever made here.
  func key() throws(TokenStoreError) -> TokenKey?
  /// Keeps a new key, and returns the one that is kept. Processes with the same store call it one after another, and only
  /// where `key` finds none.
  func make() throws(TokenStoreError) -> TokenKey
  /// Forgets a key that is kept in memory, so that the next call of `key` reads it again.
  func forget()
  /// The place, for messages.
  var place: String { get }
}

extension TokenKeySource {
  /// Does nothing: no key is kept in memory.
  public func forget() {}
}
