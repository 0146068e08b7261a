internal import Crypto
internal import CryptoExtras
internal import Foundation

/// The encryption of Bitwarden's exports with a password: AES-256-CBC and HMAC-SHA256 under two keys that HKDF expands
/// from a key of PBKDF2 or Argon2id.
struct BitwardenCipher {
  /// The members of an encrypted export.
  struct Parameters: Decodable {
    let salt: String
    let kdfType: Int
    let kdfIterations: Int
    /// MiB of memory, with Argon2id.
    let kdfMemory: Int?
    /// Lanes, with Argon2id.
    let kdfParallelism: Int?
    let encKeyValidation_DO_NOT_EDIT: String
    let data: String
  }

  /// The rounds of PBKDF2 that are read. Bitwarden allows 600,000 to 2,000,000, and 5,000 in earlier versions.
  private static let rounds = 5_000...2_000_000
  /// The passes, MiB and lanes of Argon2id that Bitwarden allows, with as much memory as every file may ask for.
  private static let argon2 = (passes: 2...10, memory: 16...FileCipher.mostMemory >> 20, lanes: 1...16)

  private let encryption: SymmetricKey
  private let authentication: SymmetricKey

  /// Derives the keys.
  ///
  /// - Throws: `.unsupported` for an unknown key derivation; `.keyDerivation` for one that is out of bounds, before
  ///   `password` is called.
  private init(_ parameters: Parameters, password: () throws -> String) throws {
    let main: SymmetricKey
    switch parameters.kdfType {
    case 0: main = try Self.pbkdf2(parameters, password)
    case 1: main = try Self.argon2id(parameters, password)
    default:
      throw VaultFormatError.unsupported(
        "the export of Bitwarden is encrypted with a key derivation that is not known",
        hint: "set PBKDF2 in Bitwarden (Security, Keys) and export again, or export as .json without a password")
    }
    func expanded(_ name: String) -> SymmetricKey {
      HKDF<SHA256>.expand(pseudoRandomKey: main, info: Data(name.utf8), outputByteCount: 32)
    }
    (encryption, authentication) = (expanded("enc"), expanded("mac"))
  }

  private static func pbkdf2(_ parameters: Parameters, _ password: () throws -> String) throws -> SymmetricKey {
    let count = parameters.kdfIterations
    guard rounds.contains(count) else { throw VaultFormatError.keyDerivation("PBKDF2 with \(count) rounds") }
    return try FileCipher.pbkdf2(try password(), salt: Data(parameters.salt.utf8), rounds: count)
  }

  /// Bitwarden's salt of Argon2id is the digest of the text.
  private static func argon2id(_ parameters: Parameters, _ password: () throws -> String) throws -> SymmetricKey {
    let (passes, memory, lanes) = (parameters.kdfIterations, parameters.kdfMemory ?? 0, parameters.kdfParallelism ?? 0)
    guard argon2.passes.contains(passes), argon2.memory.contains(memory), argon2.lanes.contains(lanes) else {
      throw VaultFormatError.keyDerivation("Argon2id with \(passes) passes, \(memory) MiB and \(lanes) lanes")
    }
    return try FileCipher.argon2id(
      try password(), salt: Data(SHA256.hash(data: Data(parameters.salt.utf8))), passes: UInt32(passes),
      kibibytes: UInt32(memory) << 10, lanes: UInt32(lanes))
  }

  /// Decrypts an export.
  ///
  /// - Throws: `.wrongPassword` if the text for that does not open, `.notAuthentic` if the data was changed.
  static func decrypt(_ parameters: Parameters, password: () throws -> String) throws -> Data {
    // What is malformed costs no key derivation.
    guard let check = Box(parameters.encKeyValidation_DO_NOT_EDIT), let data = Box(parameters.data) else {
      throw VaultFormatError.malformed(.bitwarden)
    }
    let cipher = try BitwardenCipher(parameters, password: password)
    guard cipher.open(check) != nil else { throw VaultFormatError.wrongPassword }
    guard let plain = cipher.open(data) else { throw VaultFormatError.notAuthentic }
    return plain
  }

  /// A text `2.IV|CIPHERTEXT|MAC` in base64.
  private struct Box {
    let iv: Data
    let ciphertext: Data
    let mac: Data

    init?(_ text: String) {
      guard text.hasPrefix("2.") else { return nil }
      let parts = text.dropFirst(2).split(separator: "|", maxSplits: 3, omittingEmptySubsequences: false)
        .map { Data(base64Encoded: String($0)) }
      guard parts.count == 3, let iv = parts[0], let ciphertext = parts[1], let mac = parts[2], iv.count == 16,
        mac.count == 32, !ciphertext.isEmpty, ciphertext.count % 16 == 0
      else { return nil }
      (self.iv, self.ciphertext, self.mac) = (iv, ciphertext, mac)
    }
  }

  /// The text of a box; `nil` if its code does not match. Nothing is decrypted before that.
  private func open(_ box: Box) -> Data? {
    guard
      HMAC<SHA256>.isValidAuthenticationCode(box.mac, authenticating: box.iv + box.ciphertext, using: authentication),
      let iv = try? AES._CBC.IV(ivBytes: box.iv)
    else { return nil }
    return try? AES._CBC.decrypt(box.ciphertext, using: encryption, iv: iv)
  }
}
