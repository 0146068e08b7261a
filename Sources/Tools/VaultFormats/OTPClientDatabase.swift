internal import Foundation

/// The encrypted database of OTPClient: a header, the ciphertext of AES-256-GCM and its tag, under a key of Argon2id.
/// The header is authenticated, too.
///
/// Version 3 has a header without gaps and with the highest byte of a number first. Version 2 has a structure of C,
/// with the lowest byte first and a gap of three bytes after the name.
struct OTPClientDatabase {
  /// The name, and three bytes that are zero in both versions.
  private static let beginning = Array("OTPClient\0\0\0".utf8)
  private static let nonceSize = 16
  private static let saltSize = 32
  private static let tagSize = 16
  /// The product of memory in bytes and passes. OTPClient takes 128 MiB and four passes.
  private static let mostWork = 4 << 30

  /// Where the parts of a header are.
  private struct Layout {
    let nonce: Int
    let isBigEndian: Bool

    var salt: Int { nonce + OTPClientDatabase.nonceSize }
    /// Passes, KiB of memory and lanes, with four bytes each.
    var numbers: Int { salt + OTPClientDatabase.saltSize }
    var end: Int { numbers + 12 }
  }

  private static let layouts: [UInt8: Layout] = [
    2: Layout(nonce: 16, isBigEndian: false), 3: Layout(nonce: 13, isBigEndian: true),
  ]

  private let version: UInt8
  private let passes: Int
  private let kibibytes: Int
  private let lanes: Int
  private let header: Data
  private let nonce: Data
  private let salt: Data
  private let ciphertext: Data
  private let tag: Data

  /// Whether a file begins as a database does.
  static func begins(_ bytes: some Collection<UInt8>) -> Bool { bytes.starts(with: beginning) }

  /// Parses a file that begins as a database does.
  ///
  /// - Throws: `.unsupported` for another version; `.malformed`; `.keyDerivation` if it asks for too much.
  init(_ data: Data) throws(VaultFormatError) {
    let bytes = Array(data.prefix(128))
    guard bytes.count > Self.beginning.count else { throw .malformed(.otpClient) }
    let version = bytes[Self.beginning.count]
    guard let layout = Self.layouts[version] else {
      throw .unsupported(
        "the database has version \(version) of OTPClient, which is not known",
        hint: "export it from OTPClient to Aegis")
    }
    guard data.count >= layout.end + Self.tagSize else { throw .malformed(.otpClient) }
    self.version = version
    let numbers = (0..<3).map { index -> Int in
      let start = layout.numbers + 4 * index
      let digits = Array(bytes[start..<start + 4])
      return (layout.isBigEndian ? digits : digits.reversed()).reduce(0) { $0 << 8 | Int($1) }
    }
    (passes, kibibytes, lanes) = (numbers[0], numbers[1], numbers[2])
    guard (1...16).contains(lanes), (8 * lanes...FileCipher.mostMemory >> 10).contains(kibibytes), passes > 0,
      passes <= Self.mostWork / (kibibytes << 10)
    else { throw .keyDerivation("Argon2id with \(passes) passes, \(kibibytes) KiB and \(lanes) lanes") }
    header = Data(data.prefix(layout.end))
    nonce = Data(data.dropFirst(layout.nonce).prefix(Self.nonceSize))
    salt = Data(data.dropFirst(layout.salt).prefix(Self.saltSize))
    ciphertext = Data(data.dropFirst(layout.end).dropLast(Self.tagSize))
    tag = Data(data.suffix(Self.tagSize))
  }

  /// Decrypts the list of entries, which is JSON.
  ///
  /// - Throws: `.wrongPassword`, also for a database that was changed; `.memory` and `.keyDerivation`.
  func open(_ password: String) throws(VaultFormatError) -> Data {
    var passwords = [Array(password.utf8)]
    // Writers of version 2 counted the characters of a password where its bytes were needed, and left out the last
    // ones.
    let count = password.unicodeScalars.count
    if version == 2, count < passwords[0].count { passwords.append(Array(passwords[0].prefix(count))) }
    for password in passwords {
      let key = try FileCipher.argon2id(
        password, salt: salt, passes: UInt32(passes), kibibytes: UInt32(kibibytes), lanes: UInt32(lanes))
      let plain = FileCipher.open(
        nonce: nonce, ciphertext: ciphertext, tag: tag, with: key, authenticating: header)
      // Version 2 has the zero byte after a text of C.
      if let plain { return plain.last == 0 ? plain.dropLast() : plain }
    }
    throw .wrongPassword
  }
}
