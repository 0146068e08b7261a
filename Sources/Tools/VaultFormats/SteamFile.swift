internal import AuthenticatorVault
internal import Foundation

/// A maFile: the secrets of one Steam account, as Steam Desktop Authenticator and steamguard-cli keep them. Of these
/// only that of the codes is read, never the session and the secret that confirms trades.
enum SteamFile {
  private struct Account: Decodable {
    let shared_secret: String
    let account_name: String?
  }

  /// Whether `text` may be an encrypted maFile: one long text in base64 whose content is whole blocks of AES.
  static func isEncrypted(_ text: some Collection<UInt8>) -> Bool {
    let digits = text.prefix(65_537)
    guard (256...65_536).contains(digits.count),
      digits.allSatisfy({ $0 < 0x80 && (isDigit($0) || $0 == 0x0A || $0 == 0x0D) }),
      let content = Data(base64Encoded: Data(digits), options: .ignoreUnknownCharacters)
    else { return false }
    return !content.isEmpty && content.count % 16 == 0
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
      true
    default: false
    }
  }

  static func read(_ data: Data, at time: Int64, most: Int) throws(VaultFormatError) -> ImportedFile {
    if isEncrypted(data) { throw KnownFile.encryptedMaFile.error }
    let account = try JSONDecoder.file(Account.self, data, .maFile, most: most)
    var file = ImportedFile(.maFile)
    file.add([account], named: { shownName("Steam", $0.account_name) }) { account throws(EntryFault) in
      guard let secret = Data(base64Encoded: account.shared_secret), !secret.isEmpty else {
        throw EntryFault("shared_secret is not base64, or empty")
      }
      var fields = EntryFields()
      fields.type = "steam"
      fields.issuer = "Steam"
      fields.account = account.account_name
      fields.secret = Array(secret)
      return try fields.entry(at: time)
    }
    return file
  }
}
