internal import Foundation

/// A file of a kind that people have and that is not read: named with what to do instead.
enum KnownFile {
  case picture
  case freeOTP
  case keePass
  case archive
  case database
  case keePassXML
  case encryptedMaFile
  case otherTable

  /// What the beginning of a file shows; `nil` for others.
  init?(_ bytes: [UInt8]) {
    let beginnings: [([UInt8], KnownFile)] = [
      ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], .picture), ([0xFF, 0xD8, 0xFF], .picture),
      // A serialized object of Java.
      ([0xAC, 0xED, 0x00, 0x05], .freeOTP),
      ([0x03, 0xD9, 0xA2, 0x9A, 0x67, 0xFB, 0x4B, 0xB5], .keePass), (Array("PK\u{3}\u{4}".utf8), .archive),
      (Array("SQLite format 3\0".utf8), .database),
    ]
    if let found = beginnings.first(where: { bytes.starts(with: $0.0) }) {
      self = found.1
    } else if Self.isXML(bytes) {
      self = .keePassXML
    } else if SteamFile.isEncrypted(bytes) || Self.isManifest(bytes) {
      self = .encryptedMaFile
    } else if let table = PasswordTable(bytes), table.format == nil, table.mayHaveCodes {
      self = .otherTable
    } else {
      return nil
    }
  }

  /// Whether a file is the XML export of KeePass and KeePassXC.
  private static func isXML(_ bytes: [UInt8]) -> Bool {
    let text = String(decoding: bytes.prefix(1024), as: UTF8.self)
    return text.contains("<KeePassFile")
  }

  /// Whether a file is the list of encrypted maFiles that Steam Desktop Authenticator keeps next to them.
  private static func isManifest(_ bytes: [UInt8]) -> Bool {
    guard bytes.count <= 1 << 20, bytes.contains(UInt8(ascii: "{")) else { return false }
    let text = String(decoding: bytes.prefix(4096), as: UTF8.self)
    return text.contains("\"encryption_iv\"") && text.contains("\"steamid\"")
  }

  /// What it is, and what to do.
  var error: VaultFormatError {
    switch self {
    case .picture: .unsupported("the file is a picture", hint: "authenticator scan FILE reads its QR codes")
    case .freeOTP:
      .unsupported(
        "the file is an encrypted backup of FreeOTP 2, which is not read",
        hint: "import it into Aegis, and export that")
    case .keePass:
      .unsupported(
        "the file is a database of KeePass, which is not read",
        hint: "export it from KeePassXC as CSV, import that, and delete it")
    case .archive:
      .unsupported(
        "the file is a ZIP archive", hint: "unpack it, and import the files in it: of a .1pux that is export.data")
    case .database:
      .unsupported(
        "the file is a database of an app (SQLite), which is not read", hint: "use the export of the app")
    case .keePassXML:
      .unsupported(
        "the file is an XML export of KeePass, which is not read", hint: "export it from KeePassXC as CSV")
    case .encryptedMaFile:
      .unsupported(
        "the file is an encrypted maFile of Steam Desktop Authenticator, or the list of such files, which is not read",
        hint: "remove the encryption there (Manage Encryption), and import each .maFile")
    case .otherTable:
      .unsupported(
        "the file is a table (CSV), which is not read", hint: "put its otpauth:// links into a file, one a line")
    }
  }

  /// `bytes` in UTF-8, if a mark of UTF-16 begins them: Windows writes lists so.
  ///
  /// - Throws: `.unsupported` for UTF-16 that is malformed, or cut off.
  static func inUTF8(_ bytes: [UInt8]) throws(VaultFormatError) -> [UInt8] {
    guard bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) else { return bytes }
    guard bytes.count % 2 == 0, let text = String(bytes: bytes, encoding: .utf16) else {
      throw .unsupported("the file is UTF-16 and malformed, or cut off", hint: "save it as UTF-8")
    }
    return Array(text.utf8)
  }
}
