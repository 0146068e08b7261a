public import AuthenticatorVault
internal import ByteCoding
internal import Foundation

/// A file of another authenticator.
public enum VaultFormat: String, CaseIterable, Sendable {
  /// Aegis, plain or encrypted.
  case aegis
  /// 2FAS, schemas 1 to 4, plain or encrypted.
  case twoFAS = "2fas"
  /// Links `otpauth-migration://` of Google Authenticator, one a line.
  case google
  /// Links `otpauth://` of ente Auth, one a line, with groups and notes, plain or encrypted.
  case ente
  /// Links `otpauth://`, one a line.
  case otpauth
  /// andOTP, plain or encrypted with a password.
  case andOTP = "andotp"
  /// Bitwarden and Bitwarden Authenticator, JSON or CSV, plain or JSON encrypted with a password.
  case bitwarden
  /// FreeOTP+.
  case freeOTP = "freeotp"
  /// Proton Authenticator, plain or encrypted.
  case proton
  /// Stratum (Authenticator Pro), plain or encrypted.
  case stratum
  /// OTPClient: a list, plain, or its encrypted database.
  case otpClient = "otpclient"
  /// KeePassXC, CSV.
  case keePassXC = "keepassxc"
  /// 1Password, CSV or the file `export.data` of a 1PUX archive.
  case onePassword = "1password"
  /// A maFile of Steam Desktop Authenticator or steamguard-cli, plain.
  case maFile = "mafile"
}

/// What was read from a file.
public struct ImportedFile: Sendable {
  /// The format.
  public let format: VaultFormat
  /// The entries that can be used, in the order of the file.
  public internal(set) var entries: [VaultEntry] = []
  /// The entries that cannot.
  public internal(set) var faults: [ImportFault] = []
  /// The entries that their owner has thrown away in the other authenticator.
  public internal(set) var discarded: [ImportFault] = []
  /// What is left out of entries that can be used: icons that are too long.
  public internal(set) var notes: [ImportFault] = []
  /// The parts of a migration that are missing, from 1 on.
  public internal(set) var missingParts: [Int] = []

  init(_ format: VaultFormat) { self.format = format }

  /// Adds what `read` returns for each of `items`, or the reason why it is of no use.
  mutating func add<Item>(
    _ items: some Sequence<Item>, named name: (Item) -> String, _ read: (Item) throws(EntryFault) -> VaultEntry
  ) {
    for (number, item) in items.enumerated() {
      do throws(EntryFault) {
        entries.append(try EntryBounds.checked(try read(item)))
      } catch {
        // By scalars: a character may have any number of them.
        let name = String(name(item).unicodeScalars.prefix(100))
        append(error, at: "entry \(number + 1)" + (name.isEmpty ? "" : " (\(name))"))
      }
    }
  }

  /// Names an entry that is of no use, or was thrown away.
  mutating func append(_ error: EntryFault, at place: String) {
    let fault = ImportFault(place: place, reason: error.reason)
    if error.isDiscarded { discarded.append(fault) } else { faults.append(fault) }
  }
}

/// An entry of a file that is of no use.
public struct ImportFault: Sendable, Hashable {
  /// Where it stands: `entry 3 (Deno: Mason)`, `line 7`.
  public let place: String
  /// What is wrong, without the secret.
  public let reason: String
}

/// Why a file cannot be read or written at all.
public enum VaultFormatError: Error, Sendable, Hashable {
  /// No known format.
  case unknownFormat
  /// It is not what its format says: malformed or cut off.
  case malformed(VaultFormat)
  /// It is a table whose row with this number, from 1 on, has no meaning: why.
  case malformedTable(VaultFormat, row: Int, String)
  /// The password opens nothing.
  case wrongPassword
  /// It was changed, or cut off: its authentication tag does not match.
  case notAuthentic
  /// It asks for more memory than 256 MiB, or 1 GiB in an export of ente Auth, or for an impossible key derivation.
  case keyDerivation(String)
  /// Its key derivation needs so many MiB, and the machine or the limits of the process leave fewer.
  case memory(needed: Int, available: Int)
  /// The file is of a kind that is not read or written: what, and what to do.
  case unsupported(String, hint: String)
  /// It is longer than 64 MiB, has more than 10,000 entries, or says that so many parts of migrations are missing.
  case tooLarge
  /// It has more values than its entries need, values more than 64 deep, or names or texts that are too long or have too
  /// many combining marks in a row.
  case tooComplex
}

extension VaultFormatError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unknownFormat: "the format of the file is not known"
    case .malformed(let format): "the file is malformed for \(format.rawValue), or cut off"
    case .malformedTable(let format, let row, let reason):
      "the table is malformed for \(format.rawValue) from row \(row) on: \(reason)"
    case .wrongPassword: "wrong password"
    case .notAuthentic: "the file was changed or cut off: its authentication tag does not match"
    case .keyDerivation(let what): "the file asks for an impossible key derivation: \(what)"
    case .memory(let needed, let available):
      "the file's key derivation needs \(needed) MiB of memory, and \(available) MiB are available"
    case .unsupported(let what, _): what
    case .tooLarge: "the file is longer than 64 MiB, or has more than 10,000 entries"
    case .tooComplex:
      "the file has more values than 10,000 entries need, values more than 64 deep, a member's name of more than 256 "
        + "bytes, or a text of more than 32,768 bytes that is not plain ASCII or with more than 64 combining marks in a row"
    }
  }
}

/// Reads files of other authenticators.
public enum VaultReader {
  /// The longest file in bytes: 64 MiB.
  public static let largest = 64 << 20
  /// The most entries of a file.
  public static let mostEntries = 10_000

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - format: The format; `nil` to detect it.
  ///   - time: Now, in milliseconds since 1970. An import is an act of now: the times in files are not used.
  ///   - most: The most entries, for a file that this program wrote itself.
  ///   - password: Called only if the file is encrypted.
  /// - Throws: `VaultFormatError`, and what `password` throws. An entry that is of no use is not an error of the file.
  public static func read(
    _ bytes: [UInt8], as format: VaultFormat? = nil, at time: Int64, most: Int = mostEntries,
    password: () throws -> String
  ) throws -> ImportedFile {
    guard bytes.count <= largest else { throw VaultFormatError.tooLarge }
    let bytes = try KnownFile.inUTF8(bytes)
    if format == nil, let known = KnownFile(bytes) { throw known.error }
    guard let format = format ?? detect(bytes) else {
      throw isTooComplex(bytes[...]) ? VaultFormatError.tooComplex : .unknownFormat
    }
    let data = Data(bytes)
    let file =
      switch format {
      case .aegis: try AegisFile.read(data, at: time, most: most, password: password)
      case .twoFAS: try TwoFASFile.read(data, at: time, most: most, password: password)
      case .google: try MigrationLinks.read(bytes, at: time, most: most)
      case .ente where isObject(bytes): try EnteFile.read(data, at: time, most: most, password: password)
      case .ente, .otpauth: try LinkList.read(bytes, as: format, at: time, most: most)
      case .andOTP: try AndOTPFile.read(data, at: time, most: most, password: password)
      case .bitwarden where isObject(bytes):
        try BitwardenFile.read(data, at: time, most: most, password: password)
      case .onePassword where isObject(bytes): try OnePasswordFile.read(data, at: time, most: most)
      case .bitwarden, .onePassword, .keePassXC: try PasswordTable.read(bytes, as: format, at: time, most: most)
      case .maFile: try SteamFile.read(data, at: time, most: most)
      case .freeOTP: try FreeOTPFile.read(data, at: time, most: most)
      case .proton: try ProtonFile.read(data, at: time, most: most, password: password)
      case .stratum: try StratumFile.read(data, at: time, most: most, password: password)
      case .otpClient: try OTPClientFile.read(data, at: time, most: most, password: password)
      }
    guard file.entries.count + file.faults.count + file.discarded.count <= most else { throw VaultFormatError.tooLarge }
    return file
  }

  /// The names of members only.
  private struct Names: Decodable {
    let names: Set<String>

    init(from decoder: any Decoder) throws {
      names = Set(try decoder.container(keyedBy: AnyName.self).allKeys.map(\.stringValue))
    }
  }

  /// The names of the first of a list.
  private struct FirstNames: Decodable {
    let names: Set<String>?

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      names = container.isAtEnd ? nil : try container.decode(Names.self).names
    }
  }

  private struct AnyName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Whether a file is a JSON object, and no table.
  private static func isObject(_ bytes: [UInt8]) -> Bool {
    let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
    return content.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
  }

  /// Whether a file is JSON with more values than are read.
  private static func isTooComplex(_ bytes: ArraySlice<UInt8>) -> Bool {
    let first = bytes.first { !" \t\r\n\u{FEFF}".utf8.contains($0) }
    guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return false }
    return JSONBounds.fault(in: Array(bytes), mostValues: mostEntries * JSONBounds.valuesForEntry) == .tooComplex
  }

  /// The format of a file by its content; `nil` if it is none of them.
  public static func detect(_ bytes: [UInt8]) -> VaultFormat? {
    let spaces: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
    let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
    guard !isTooComplex(content) else { return nil }
    switch content.first(where: { !spaces.contains($0) }) {
    case UInt8(ascii: "{"):
      guard let names = try? JSONDecoder().decode(Names.self, from: Data(content)).names else { return nil }
      if names.isSuperset(of: ["header", "db"]) { return .aegis }
      if names.contains("services") { return .twoFAS }
      if names.contains("Authenticators") { return .stratum }
      if names.contains("tokens") { return .freeOTP }
      if names.contains("items") || names.contains("encKeyValidation_DO_NOT_EDIT") { return .bitwarden }
      if names.contains("accounts") { return .onePassword }
      if names.contains("shared_secret") { return .maFile }
      if names.contains("entries") || names.isSuperset(of: ["salt", "content"]) { return .proton }
      if names.isSuperset(of: ["kdfParams", "encryptedData"]) { return .ente }
      return nil
    case UInt8(ascii: "["):
      guard let names = try? JSONDecoder().decode(FirstNames.self, from: Data(content)).names else { return nil }
      // Both always write these. A list of other objects with secrets has members that would be passed over.
      guard names.isSuperset(of: ["secret", "type"]), names.contains("label") || names.contains("digits") else {
        return nil
      }
      return names.contains("algo") ? .otpClient : .andOTP
    default:
      if OTPClientDatabase.begins(content) { return .otpClient }
      if let format = PasswordTable(bytes)?.format { return format }
      if content.starts(with: Array("AUTHENTICATORPRO".utf8)) || content.starts(with: Array("AuthenticatorPro".utf8)) {
        return .stratum
      }
      // As bytes: a search in a text normalizes it, and this one may have any number of combining marks.
      let text = content.prefix(65_536).map(\.lowercasedASCII)
      func has(_ words: String) -> Bool {
        let wanted = Array(words.utf8)
        return text.indices.contains { text[$0] == wanted[0] && text[$0...].starts(with: wanted) }
      }
      if has("otpauth-migration://") { return .google }
      guard ["otpauth://", LinkList.steam, "motp://"].contains(where: has) else {
        return AndOTPFile.isEncrypted(bytes) ? .andOTP : nil
      }
      return has("codedisplay=") ? .ente : .otpauth
    }
  }
}

/// Writes files for other authenticators.
public enum VaultWriter {
  /// A file, and what has no place in it.
  public struct Written: Sendable {
    /// The content.
    public let bytes: [UInt8]
    /// The entries that the format cannot carry.
    public let faults: [ImportFault]
  }

  /// The entries of which `file`, as it was read again, does not keep every field: with their names, and the fields.
  ///
  /// Entries that are not in the file have no part in it; `Written.faults` has them. The times of an entry are not
  /// compared: few formats have a place for them. Nor are icons and places of an app other than that of the file.
  public static func losses(of entries: [VaultEntry], in file: ImportedFile) -> [ImportFault] {
    let kept = Dictionary(file.entries.map { ($0.id, $0) }) { first, _ in first }
    let bare = EntryLook.removed
    return entries.compactMap { entry in
      guard let again = kept[entry.codesID] else { return nil }
      let fields = [
        ("issuer", again.issuer == entry.issuer), ("account", again.account == entry.account),
        ("note", again.note == entry.note), ("groups", again.tags == entry.tags),
        ("counter", again.counter == entry.counter),
        ("icon or favorite", EntryLook.isKept(of: entry, in: again, file.format)),
        ("unknown members", bare(again).otherFields == bare(entry).otherFields),
      ]
      let lost = fields.filter { !$0.1 }.map(\.0)
      guard !lost.isEmpty else { return nil }
      return ImportFault(
        place: entry.name, reason: "\(file.format.rawValue) does not keep: \(lost.joined(separator: ", "))")
    }
  }

  /// Writes `entries`.
  ///
  /// - Parameters:
  ///   - format: `aegis`, `twoFAS`, `google` or `otpauth`.
  ///   - password: Encrypts the file, with `aegis` and `twoFAS`; `nil` writes it plain.
  ///   - time: Now, in milliseconds since 1970.
  /// - Throws: `.unsupported` for another format, and for a password with a format that has none; `.tooLarge` for a file
  ///   that would not be read again. An entry that the format cannot carry is not an error of the file.
  public static func write(
    _ entries: [VaultEntry], as format: VaultFormat, password: String?, at time: Int64
  ) throws(VaultFormatError) -> Written {
    let faults = entries.map { fault(in: $0, as: format) }
    let fitting = EntryLook.ordered(zip(entries, faults).filter { $0.1 == nil }.map(\.0), for: format)
    let written = try content(fitting, as: format, password: password, at: time)
    guard written.bytes.count <= VaultReader.largest else { throw .tooLarge }
    let long = zip(entries, faults).compactMap { entry, fault in
      fault.map { ImportFault(place: entry.name, reason: $0) }
    }
    return Written(bytes: written.bytes, faults: long + written.faults)
  }

  /// What of the texts that `format` carries is too long.
  private static func fault(in entry: VaultEntry, as format: VaultFormat) -> String? {
    switch format {
    case .aegis: EntryBounds.fault(in: entry)
    case .twoFAS:
      EntryBounds.fault(issuer: entry.issuer, account: entry.account, tags: Array(entry.tags.prefix(1)))
    default: EntryBounds.fault(issuer: entry.issuer, account: entry.account)
    }
  }

  private static func content(
    _ entries: [VaultEntry], as format: VaultFormat, password: String?, at time: Int64
  ) throws(VaultFormatError) -> Written {
    switch format {
    case .aegis: return try AegisFile.write(entries, password: password)
    case .twoFAS: return try TwoFASFile.write(entries, password: password, at: time)
    case .google, .otpauth:
      guard password == nil else {
        throw .unsupported("\(format.rawValue) has no password", hint: "leave it out, or export to aegis or 2fas")
      }
      return format == .google ? try MigrationLinks.write(entries) : LinkList.write(entries)
    case .ente, .andOTP, .bitwarden, .freeOTP, .proton, .stratum, .otpClient, .keePassXC, .onePassword, .maFile:
      throw .unsupported("\(format.rawValue) is read, not written", hint: "aegis, 2fas, google or otpauth")
    }
  }
}
