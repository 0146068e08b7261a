internal import CVaultCiphers
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// The ciphers of the files: AES-256-GCM under a key that is derived from a password.
enum FileCipher {
  /// The most memory that a file may ask for, in bytes: 256 MiB.
  static let mostMemory = 256 << 20

  /// The most work of a file in blocks of scrypt, the product of n, r and p: 256 MiB twice, about two seconds.
  static let mostWork = 4_194_304.0

  /// The work of scrypt in blocks. Of any numbers, also of those that no file may have.
  static func work(n: Int, r: Int, p: Int) -> Double { Double(max(0, n)) * Double(max(0, r)) * Double(max(0, p)) }

  /// A key from scrypt (RFC 7914).
  ///
  /// - Parameter available: The memory that this process may take, in bytes; `nil` if it is not known.
  /// - Throws: `.keyDerivation` for a cost that is not a power of two, or beyond 256 MiB; `.memory` if the machine does
  ///   not have it.
  static func scrypt(
    _ password: String, salt: Data, n: Int, r: Int, p: Int, available: Int? = MemoryAllowance.available()
  ) throws(VaultFormatError) -> SymmetricKey {
    guard n > 1, n.nonzeroBitCount == 1, (1...64).contains(r), (1...16).contains(p) else {
      throw .keyDerivation("scrypt with n=\(n), r=\(r), p=\(p)")
    }
    let (bytes, isTooMuch) = n.multipliedReportingOverflow(by: 128 * r)
    guard !isTooMuch, bytes <= mostMemory else {
      throw .keyDerivation("scrypt with n=\(n), r=\(r) needs more than 256 MiB")
    }
    guard work(n: n, r: r, p: p) <= mostWork else {
      throw .keyDerivation("scrypt with n=\(n), r=\(r), p=\(p) takes too long")
    }
    try checkMemory(bytes, of: available)
    do {
      return try KDF.Scrypt.deriveKey(
        from: Data(password.utf8), salt: salt, outputByteCount: 32, rounds: n, blockSize: r, parallelism: p,
        maxMemory: mostMemory + (16 << 20))
    } catch {
      throw .keyDerivation("scrypt with n=\(n), r=\(r), p=\(p)")
    }
  }

  /// The hash of the HMAC in PBKDF2.
  enum PBKDF2Hash {
    case sha1, sha256
  }

  /// A key from PBKDF2 with HMAC (RFC 8018).
  static func pbkdf2(
    _ password: String, salt: Data, rounds: Int, hash: PBKDF2Hash = .sha256
  ) throws(VaultFormatError) -> SymmetricKey {
    do {
      return try KDF.Insecure.PBKDF2.deriveKey(
        from: Data(password.utf8), salt: salt, using: hash == .sha1 ? .insecureSHA1 : .sha256, outputByteCount: 32,
        unsafeUncheckedRounds: rounds)
    } catch {
      throw .keyDerivation("PBKDF2 with \(rounds) rounds")
    }
  }

  /// What is left to other programs, and to the rest of this one.
  private static let reserve = 64 << 20

  /// Checks that a key derivation with so many bytes of memory does not get this process killed. A kernel that
  /// overcommits memory gives it, and kills the process that uses it.
  ///
  /// - Throws: `.memory`
  static func checkMemory(
    _ bytes: Int, of available: Int? = MemoryAllowance.available()
  ) throws(VaultFormatError) {
    guard let available else { return }
    let left = max(0, available - reserve)
    guard bytes <= left else { throw .memory(needed: bytes >> 20, available: left >> 20) }
  }

  /// A key of 32 bytes by Argon2id (RFC 9106), version 1.3.
  ///
  /// - Parameter salt: At least 8 bytes.
  /// - Throws: `.memory` if the machine does not have it; `.keyDerivation` if a parameter is out of range, or the memory
  ///   is not given.
  static func argon2id(
    _ password: String, salt: Data, passes: UInt32, kibibytes: UInt32, lanes: UInt32
  ) throws(VaultFormatError) -> SymmetricKey {
    try argon2id(Array(password.utf8), salt: salt, passes: passes, kibibytes: kibibytes, lanes: lanes)
  }

  /// The same for the bytes of a password.
  static func argon2id(
    _ password: [UInt8], salt: Data, passes: UInt32, kibibytes: UInt32, lanes: UInt32
  ) throws(VaultFormatError) -> SymmetricKey {
    try checkMemory(Int(kibibytes) << 10)
    let salt = Array(salt)
    var key = [UInt8](repeating: 0, count: 32)
    let code = argon2id_hash_raw(
      passes, kibibytes, lanes, password, password.count, salt, salt.count, &key, key.count)
    guard code == ARGON2_OK.rawValue else {
      throw .keyDerivation("Argon2id: \(String(cString: argon2_error_message(code)))")
    }
    return SymmetricKey(data: key)
  }

  /// Decrypts; `nil` if the tag does not match, or the nonce has other than 12 or 16 bytes.
  static func open(
    nonce: Data, ciphertext: Data, tag: Data, with key: SymmetricKey, authenticating other: Data = Data()
  ) -> Data? {
    guard [12, 16].contains(nonce.count), tag.count == 16, let nonce = try? AES.GCM.Nonce(data: nonce),
      let box = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag)
    else { return nil }
    return try? AES.GCM.open(box, using: key, authenticating: other)
  }

  /// Encrypts with a new nonce.
  static func seal(_ plaintext: Data, with key: SymmetricKey) -> AES.GCM.SealedBox {
    do { return try AES.GCM.seal(plaintext, using: key) } catch { preconditionFailure("AES-GCM failed: \(error)") }
  }

  /// Random bytes.
  static func random(_ count: Int) -> Data {
    SymmetricKey(size: .init(bitCount: count * 8)).withUnsafeBytes { Data($0) }
  }
}
