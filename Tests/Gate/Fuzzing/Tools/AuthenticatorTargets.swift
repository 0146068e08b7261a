import AuthenticatorVault
import Foundation
import OneTimePasswords
import VaultFormats

extension FuzzTarget {
  static let base32 = FuzzTarget(
    name: "base32", longest: 256, words: ["====", "MY", "0", "\u{DF}", "\u{131}", "\u{17F}"],
    seeds: { ["", "MY======", "MZXQ", "mzxw6===", "MZXW6YTBOI======", "A", "MZ=XQ"].map { Array($0.utf8) } },
    accepts: AuthenticatorInvariants.base32)

  static let otpauth = FuzzTarget(
    name: "otpauth", longest: 1024,
    words: [
      "otpauth://", "totp/", "hotp/", "steam/", "?secret=", "&issuer=", "&algorithm=SHA256", "&digits=", "%3A", "+",
    ],
    seeds: { AuthenticatorInvariants.links.map { Array($0.utf8) } }, accepts: AuthenticatorInvariants.otpauth)

  static let migration = FuzzTarget(
    name: "migration", longest: 2048, words: ["otpauth-migration://offline?data=", "%3D", "%2B", "%2F"],
    seeds: { [try AuthenticatorInvariants.file(.google), Array("otpauth-migration://offline?data=CAE=".utf8)] },
    accepts: { input throws(InvariantViolation) in try AuthenticatorInvariants.file(input, .google) })

  static let aegis = FuzzTarget(
    name: "aegis", longest: 8192, words: ["\"info\":", "\"secret\":", "\"totp\"", "\"slots\":null", "1e999"],
    seeds: { [try AuthenticatorInvariants.file(.aegis), Array("{}".utf8)] },
    accepts: { input throws(InvariantViolation) in try AuthenticatorInvariants.file(input, .aegis) })

  static let twoFAS = FuzzTarget(
    name: "2fas", longest: 8192, words: ["\"services\":", "\"otp\":", "\"tokenType\":\"HOTP\"", "\"schemaVersion\":3"],
    seeds: { [try AuthenticatorInvariants.file(.twoFAS), Array("{}".utf8)] },
    accepts: { input throws(InvariantViolation) in try AuthenticatorInvariants.file(input, .twoFAS) })

  static let vault = FuzzTarget(
    name: "vault", longest: 4096,
    words: ["\"tokens\":", "\"removed\":", "\"version\":1", "\"updated\":", "\"counter\":"],
    seeds: { [Array(AuthenticatorInvariants.vault.json()), Array("{\"tokens\":[],\"version\":1}".utf8)] },
    accepts: AuthenticatorInvariants.vault)
}

/// Texts and files of authenticators have one meaning, which survives writing them again.
enum AuthenticatorInvariants {
  static let links = [
    "otpauth://totp/GitHub:alice?secret=GEZDGNBVGY3TQOJQ&issuer=GitHub",
    "OTPAUTH://HOTP/a%20b?secret=gezd&counter=5&algorithm=sha512&digits=8",
    "otpauth://totp/a?secret=GEZDGNBV&encoder=steam&codeDisplay=%7B%7D", "otpauth://totp/?secret=",
  ]

  private static let entries = [
    VaultEntry(issuer: "GitHub", account: "alice", secret: Array("1234567890".utf8), note: "n", tags: ["t"], at: 7),
    VaultEntry(
      issuer: "", account: "b", secret: [1, 2], kind: .hotp, algorithm: .sha512, digits: 8, counter: 9, at: 7),
  ]

  static let vault: Vault = {
    var vault = Vault()
    for entry in entries { vault.add(entry, at: 7) }
    try? vault.remove(entries[1].id, at: 9)
    return vault
  }()

  static func file(_ format: VaultFormat) throws -> [UInt8] {
    try VaultWriter.write(entries, as: format, password: nil, at: 7).bytes
  }

  static func base32(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    for isPadded in [false, true] {
      let text = Base32.encode(input, padded: isPadded)
      try require((try? Base32.decode(text)) == input, "base32 decodes to the encoded bytes")
    }
    let text = String(decoding: input, as: UTF8.self)
    guard let bytes = try? Base32.decode(text) else { return false }
    let form = text.uppercased().filter { $0 != "=" }
    try require(Base32.encode(bytes) == form, "base32 has one form without padding")
    return true
  }

  static func otpauth(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let text = String(decoding: input, as: UTF8.self)
    guard let uri = try? OTPAuthURI(text) else { return false }
    try require((try? OTPAuthURI(uri.text)) == uri, "a written link is read as the same link", uri.text)
    let entry = VaultEntry(uri, at: 1)
    let code = try? entry.code(at: Date(timeIntervalSince1970: 59))
    try require(code?.isEmpty == false, "a link has a code")
    return true
  }

  /// A file is read without a trap, and what was read is written and read as the same entries.
  static func file(_ input: [UInt8], _ format: VaultFormat) throws(InvariantViolation) -> Bool {
    struct Encrypted: Error {}
    guard let file = try? VaultReader.read(input, as: format, at: 7, password: { throw Encrypted() }),
      !file.entries.isEmpty
    else { return false }
    guard let written = try? VaultWriter.write(file.entries, as: format, password: nil, at: 7) else {
      throw InvariantViolation(invariant: "what was read is written", detail: "")
    }
    let missing = Set(written.faults.map(\.place))
    let again = try? VaultReader.read(written.bytes, as: format, at: 7) { throw Encrypted() }
    let expected = file.entries.filter { !missing.contains($0.name) }.map(\.id)
    try require(
      again.map { Set($0.entries.map(\.id)).isSuperset(of: expected) } ?? expected.isEmpty,
      "written entries are read again")
    return true
  }

  static func vault(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let vault = try? Vault(json: Data(input)) else { return false }
    try require((try? Vault(json: vault.json())) == vault, "a written vault is read as the same vault")
    var merged = vault
    merged.merge(self.vault)
    var other = self.vault
    other.merge(vault)
    try require(merged == other, "a merge is commutative")
    merged.merge(vault)
    try require(merged == other, "a merge is idempotent")
    for entry in merged.entries { _ = try? entry.code(at: Date(timeIntervalSince1970: 59)) }
    return true
  }
}
