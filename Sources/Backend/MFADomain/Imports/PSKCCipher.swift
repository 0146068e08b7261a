internal import ByteCoding
internal import Crypto
internal import CryptoExtras
internal import Foundation
internal import OneTimePasswords

/// The encryption of a key container (RFC 6030, section 6): AES-CBC, and an HMAC over each encrypted value.
struct PSKCCipher {
  /// The most rounds of PBKDF2 that are run: about a second of a processor.
  private static let mostRounds = 2_000_000

  /// The name of a method of encryption, without its namespace, and the bytes of its key.
  private static let ciphers = ["aes128-cbc": 16, "aes192-cbc": 24, "aes256-cbc": 32]
  private static let namespaces = [
    "http://www.w3.org/2001/04/xmlenc#", "http://www.w3.org/2001/04/xmldsig-more#",
    "http://www.w3.org/2000/09/xmldsig#",
  ]

  private struct Keys {
    let encryption: [UInt8]
    let mac: [UInt8]
    let hash: TOTPAlgorithm
  }

  private let keys: Keys?

  /// Prepares to open the values of `container`.
  ///
  /// - Throws: `.key` if the container is encrypted and the key is missing, of another kind, or wrong.
  init(_ container: XMLElement, key: PSKCFile.Key?) throws(ImportError) {
    let encryption = container["EncryptionKey"]
    guard encryption != nil || container["MACMethod"] != nil else {
      guard key == nil else { throw .key("the container is not encrypted: give no key and no passphrase") }
      keys = nil
      return
    }
    let secret = try Self.secret(encryption, key)
    guard let method = container["MACMethod"] else {
      throw .file("the container is encrypted without a MACMethod, so a changed file would not be noticed")
    }
    guard let hash = Self.hash(method.attributes["Algorithm"]) else {
      throw .file("line \(method.line): the MAC method is none of HMAC-SHA1, HMAC-SHA256 and HMAC-SHA512")
    }
    var mac = secret
    if let macKey = method["MACKey"] {
      // Nothing authenticates this value: a wrong key shows at the first MAC.
      guard let sealed = Self.sealed(macKey), let opened = Self.open(sealed, secret), !opened.isEmpty else {
        throw .key("the key or passphrase does not open the container")
      }
      mac = opened
    }
    keys = Keys(encryption: secret, mac: mac, hash: hash)
  }

  /// The bytes of a secret: in base64, or encrypted.
  ///
  /// - Throws: `TokenFault` for a plain secret in an encrypted container: no key and no MAC would prove it.
  func bytes(of element: XMLElement, _ name: String) throws -> [UInt8] {
    if let plain = try plain(of: element, name) {
      guard keys == nil else {
        throw TokenFault("\(name) is plain in an encrypted container, so the file may have been changed")
      }
      guard let bytes = plain.base64 else { throw TokenFault("\(name) is not base64") }
      return bytes
    }
    return try opened(element, name)
  }

  /// The number of a value, in decimal or encrypted in eight bytes (section 4.2); `nil` for no element.
  ///
  /// A number may be plain in an encrypted container, as the counter of figure 6 is.
  func number(_ element: XMLElement?) throws -> Int64? {
    guard let element else { return nil }
    if let plain = try plain(of: element, element.name) { return try PSKCFile.number(plain.trimmed, element.name) }
    let bytes = try opened(element, element.name)
    guard (1...8).contains(bytes.count) else { throw TokenFault("\(element.name) is no number of eight bytes") }
    return Int64(bitPattern: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }

  /// The plain value; `nil` for none.
  ///
  /// - Throws: `TokenFault` for a value that is encrypted as well, and for one with a MAC, which is defined over
  ///   encrypted values only (section 6.1.1).
  private func plain(of element: XMLElement, _ name: String) throws(TokenFault) -> XMLElement? {
    guard let plain = element["PlainValue"] else { return nil }
    guard element["EncryptedValue"] == nil else { throw TokenFault("\(name) is there plain and encrypted") }
    guard keys == nil || element["ValueMAC"] == nil else { throw TokenFault("\(name) is plain, and has a ValueMAC") }
    return plain
  }

  private func opened(_ element: XMLElement, _ name: String) throws -> [UInt8] {
    guard let value = element["EncryptedValue"] else {
      throw TokenFault("\(name) has neither a PlainValue nor an EncryptedValue")
    }
    guard let keys else { throw TokenFault("\(name) is encrypted, and the container has no EncryptionKey") }
    guard let sealed = Self.sealed(value) else {
      throw TokenFault("\(name): only AES-CBC with 128, 192 and 256 bits is read")
    }
    // The MAC first: nothing of an unauthenticated value is decrypted.
    guard let mac = element["ValueMAC"]?.base64 else {
      throw TokenFault("\(name) is encrypted without a ValueMAC")
    }
    guard constantTimeEqual(Self.mac(sealed.bytes, keys.mac, keys.hash), mac) else {
      throw ImportError.key(
        "line \(element.line): the MAC of \(name) is wrong: another key or passphrase, or the file was changed")
    }
    guard let plain = Self.open(sealed, keys.encryption) else {
      throw TokenFault("\(name) cannot be decrypted: its key has another length, or its padding is wrong")
    }
    return plain
  }

  // MARK: Keys

  private static func secret(_ element: XMLElement?, _ key: PSKCFile.Key?) throws(ImportError) -> [UInt8] {
    guard let derived = element?["DerivedKey"] else {
      guard case .shared(let bytes)? = key else {
        throw .key(
          key == nil
            ? "the container is encrypted with a key that its sender has given you: name its file"
            : "the container is encrypted with a shared key, not with a passphrase")
      }
      guard ciphers.values.contains(bytes.count) else { throw .key("the shared key must have 16, 24 or 32 bytes") }
      return bytes
    }
    guard case .passphrase(let passphrase)? = key else {
      throw .key(
        key == nil
          ? "the container is encrypted with a passphrase: name the file that has it"
          : "the container is encrypted with a passphrase, not with a shared key")
    }
    guard let method = derived["KeyDerivationMethod"], method.attributes["Algorithm"]?.hasSuffix("#pbkdf2") == true,
      let parameters = method["PBKDF2-params"],
      let salt = parameters["Salt"]?["Specified"]?.base64,
      (1...1024).contains(salt.count),
      let rounds = parameters["IterationCount"].flatMap({ Int($0.trimmed) }),
      let length = parameters["KeyLength"].flatMap({ Int($0.trimmed) })
    else { throw .file("line \(derived.line): the key derivation is not PBKDF2 with a salt, rounds and a key length") }
    guard (1...mostRounds).contains(rounds) else {
      throw .file("line \(derived.line): PBKDF2 with \(rounds) rounds; 1 to \(mostRounds) are read")
    }
    guard ciphers.values.contains(length) else {
      throw .file("line \(derived.line): a derived key has 16, 24 or 32 bytes, not \(length)")
    }
    let name = parameters["PRF"]?.attributes["Algorithm"]
    guard let hash = name == nil ? .sha1 : hash(name) else {
      throw .file("line \(derived.line): the PRF is none of HMAC-SHA1, HMAC-SHA256 and HMAC-SHA512")
    }
    return derive(passphrase, salt, rounds, length, hash)
  }

  private static func derive(
    _ passphrase: String, _ salt: [UInt8], _ rounds: Int, _ length: Int, _ hash: TOTPAlgorithm
  ) -> [UInt8] {
    let function: KDF.Insecure.PBKDF2.HashFunction =
      switch hash {
      case .sha1: .insecureSHA1
      case .sha256: .sha256
      case .sha512: .sha512
      }
    // The sender has chosen the rounds.
    let key = try? KDF.Insecure.PBKDF2.deriveKey(
      from: Array(passphrase.utf8), salt: salt, using: function, outputByteCount: length,
      unsafeUncheckedRounds: rounds)
    return key?.withUnsafeBytes { Array($0) } ?? []
  }

  private static func hash(_ algorithm: String?) -> TOTPAlgorithm? {
    guard let algorithm, let mark = algorithm.lastIndex(of: "#") else { return nil }
    let name = algorithm[algorithm.index(after: mark)...].lowercased()
    guard name.hasPrefix("hmac-") || name.hasPrefix("hmacwith") else { return nil }
    return TOTPAlgorithm(name: name.replacing("hmacwith", with: "hmac"))
  }

  // MARK: Values

  private static func sealed(_ element: XMLElement) -> (bytes: [UInt8], keyLength: Int)? {
    guard let name = element["EncryptionMethod"]?.attributes["Algorithm"],
      let namespace = namespaces.first(where: name.hasPrefix),
      let length = ciphers[String(name.dropFirst(namespace.count))],
      let bytes = element["CipherData"]?["CipherValue"]?.base64, bytes.count >= 32, bytes.count % 16 == 0
    else { return nil }
    return (bytes, length)
  }

  private static func open(_ sealed: (bytes: [UInt8], keyLength: Int), _ key: [UInt8]) -> [UInt8]? {
    guard key.count == sealed.keyLength, let iv = try? AES._CBC.IV(ivBytes: sealed.bytes.prefix(16)),
      let plain = try? AES._CBC.decrypt(
        sealed.bytes.dropFirst(16), using: SymmetricKey(data: key), iv: iv, noPadding: true),
      // XML Encryption, section 5.2: the last byte counts the bytes of the padding, whose others may be anything.
      let padding = plain.last, (1...16).contains(padding)
    else { return nil }
    return Array(plain.dropLast(Int(padding)))
  }

  private static func mac(_ bytes: [UInt8], _ key: [UInt8], _ hash: TOTPAlgorithm) -> [UInt8] {
    let key = SymmetricKey(data: key)
    return switch hash {
    case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: bytes, using: key))
    case .sha256: Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
    case .sha512: Array(HMAC<SHA512>.authenticationCode(for: bytes, using: key))
    }
  }
}
