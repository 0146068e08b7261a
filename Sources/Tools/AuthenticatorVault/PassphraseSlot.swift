internal import Crypto
internal import CryptoExtras
internal import Foundation

/// The key of a vault, encrypted under a passphrase with scrypt (RFC 7914) and AES-256-GCM.
public struct PassphraseSlot: Sendable, Hashable {
  /// The cost of scrypt in new slots: 2^17 blocks of 1 KiB, 128 MiB, about half a second.
  public static let cost = 131_072

  /// The greatest cost of a slot that is read.
  static let largestCost = 1 << 18

  /// The cost, a power of two; times 1 KiB of memory.
  let cost: Int
  /// 16 random bytes.
  let salt: [UInt8]
  /// The vault's key in the combined form, 60 bytes.
  let wrappedKey: Data

  /// Encrypts `key` under `passphrase`. Takes as long as deriving the key does.
  ///
  /// - Throws: `.emptyPassphrase`; `.memory` if there is too little for the key derivation.
  public init(_ key: VaultKey, passphrase: String, cost: Int = PassphraseSlot.cost) throws(VaultError) {
    guard !passphrase.isEmpty else { throw .emptyPassphrase }
    var generator = SystemRandomNumberGenerator()
    self.cost = cost
    salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    wrappedKey = CombinedBox.seal(Data(key.bytes), with: try Self.derive(passphrase, salt, cost))
  }

  init(cost: Int, salt: [UInt8], wrappedKey: Data) throws(VaultError) {
    guard cost > 0, cost.nonzeroBitCount == 1, cost >= 1 << 10 else { throw .malformed("cost of scrypt") }
    // 256 MiB of memory: twice what new slots have.
    guard cost <= Self.largestCost else { throw .tooCostly }
    self.cost = cost
    self.salt = salt
    self.wrappedKey = wrappedKey
  }

  /// The key of the vault. Takes as long as deriving the key does.
  ///
  /// - Throws: `.wrongPassphrase`; `.memory` if there is too little for the key derivation.
  public func key(passphrase: String) throws(VaultError) -> VaultKey {
    let derived = try Self.derive(passphrase, salt, cost)
    guard let bytes = try? CombinedBox.open(wrappedKey, with: derived), let key = VaultKey(bytes: bytes) else {
      throw .wrongPassphrase
    }
    return key
  }

  /// One passphrase has several encodings in Unicode, depending on the keyboard; all of them count as one.
  private static func derive(_ passphrase: String, _ salt: [UInt8], _ cost: Int) throws(VaultError) -> VaultKey {
    let text = Data(passphrase.precomposedStringWithCanonicalMapping.utf8)
    let key: SymmetricKey
    do {
      key = try KDF.Scrypt.deriveKey(
        from: text, salt: salt, outputByteCount: VaultKey.length, rounds: cost, blockSize: 8, parallelism: 1,
        maxMemory: 1200 * (cost + 1024))
    } catch {
      // The parameters of a slot are checked when it is made, so that only the memory can be missing.
      throw .memory(needed: cost >> 10)
    }
    guard let derived = key.withUnsafeBytes({ VaultKey(bytes: Data($0)) }) else { throw .malformed("derived key") }
    return derived
  }
}

extension PassphraseSlot: Codable {
  private enum CodingKeys: String, CodingKey {
    case derivation = "kdf"
    case cost = "n"
    case blockSize = "r"
    case parallelism = "p"
    case salt
    case wrappedKey = "key"
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard try container.decode(String.self, forKey: .derivation) == "scrypt",
      try container.decode(Int.self, forKey: .blockSize) == 8,
      try container.decode(Int.self, forKey: .parallelism) == 1
    else { throw VaultError.malformed("slot") }
    try self.init(
      cost: container.decode(Int.self, forKey: .cost), salt: Array(container.decode(Data.self, forKey: .salt)),
      wrappedKey: container.decode(Data.self, forKey: .wrappedKey))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode("scrypt", forKey: .derivation)
    try container.encode(cost, forKey: .cost)
    try container.encode(8, forKey: .blockSize)
    try container.encode(1, forKey: .parallelism)
    try container.encode(Data(salt), forKey: .salt)
    try container.encode(wrappedKey, forKey: .wrappedKey)
  }
}
