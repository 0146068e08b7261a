public import AuthenticatorVault
internal import ByteCoding
internal import Foundation
internal import OneTimePasswords

/// A link that has one entry. Files, pictures and what a person types are read by this alone.
public enum EntryLink {
  /// Why a link has no entry that can be used.
  public struct Fault: Error, Sendable, Hashable {
    /// What is wrong, without the secret.
    public let reason: String
  }

  /// Whether `text` begins as a link of an authenticator does, of one entry or of several.
  public static func isLink(_ text: String) -> Bool {
    isMigration(text) || ["otpauth:", "steam:", "motp:"].contains { text.beginsInEitherCase(with: $0) }
  }

  /// Whether `text` begins as a link of several entries does.
  public static func isMigration(_ text: String) -> Bool { text.beginsInEitherCase(with: "otpauth-migration:") }

  /// The entry of a link `otpauth://` or `steam://SECRET`.
  ///
  /// - Parameter time: Now, in milliseconds since 1970.
  public static func entry(_ text: String, at time: Int64) throws(Fault) -> VaultEntry {
    do throws(EntryFault) { return try LinkList.entry(text, at: time) } catch { throw Fault(reason: error.reason) }
  }
}

extension StringProtocol {
  /// Whether this text begins with `prefix`, which is ASCII in lower case.
  ///
  /// Bytes are compared: `hasPrefix` normalizes a text from outside, which may have any number of combining marks.
  func beginsInEitherCase(with prefix: String) -> Bool {
    utf8.lazy.map(\.lowercasedASCII).starts(with: prefix.utf8)
  }
}

/// Lists of `otpauth` links, one a line, as many authenticators write them.
enum LinkList {
  /// The lines of a file for each entry that it may have: others are empty, or remarks.
  static let linesForEntry = 10

  static func read(
    _ bytes: [UInt8], as format: VaultFormat, at time: Int64, most: Int
  ) throws(VaultFormatError) -> ImportedFile {
    var file = ImportedFile(format)
    let lines = try lines(of: bytes, most: most)
    guard lines.count <= most else { throw .tooLarge }
    for (number, line) in lines {
      do throws(EntryFault) {
        file.entries.append(try entry(line, at: time))
      } catch {
        file.append(error, at: "line \(number)")
      }
    }
    return file
  }

  /// The lines that say something, with their numbers from 1 on.
  ///
  /// - Throws: `.tooLarge` for more than ten times `most`, with those that say nothing; `.tooComplex` for too many
  ///   combining marks in a row.
  static func lines(of bytes: [UInt8], most: Int) throws(VaultFormatError) -> [(number: Int, text: String)] {
    let most = most * linesForEntry
    let content = String(decoding: bytes, as: UTF8.self)
    guard !CombiningMarks.areTooMany(in: content) else { throw .tooComplex }
    let lines = content.split(maxSplits: most, omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard lines.count <= most else { throw .tooLarge }
    return lines.enumerated().compactMap { index, line in
      let text = line.trimmingCharacters(in: .whitespaces.union(["\u{FEFF}"]))
      return text.isEmpty || text.utf8.first == UInt8(ascii: "#") ? nil : (index + 1, text)
    }
  }

  /// The beginning of links with a secret of Steam alone, as Bitwarden and KeePassXC have them.
  static let steam = "steam://"

  /// The entry of a link: `otpauth://`, or `steam://SECRET`.
  static func entry(_ link: String, at time: Int64) throws(EntryFault) -> VaultEntry {
    guard !CombiningMarks.areTooMany(inLink: link) else {
      throw EntryFault("the link has more than \(CombiningMarks.most) combining marks in a row")
    }
    return try EntryBounds.checked(try uncheckedEntry(link, at: time))
  }

  private static func uncheckedEntry(_ link: String, at time: Int64) throws(EntryFault) -> VaultEntry {
    // By scalars: a mark that combines with a delimiter would make another character of it.
    let scheme = String(link.unicodeScalars.prefix { $0 != ":" }).lowercased()
    switch scheme {
    case "steam":
      guard link.beginsInEitherCase(with: steam) else { throw EntryFault("a link of Steam begins with steam://") }
      var fields = EntryFields()
      fields.type = "steam"
      fields.issuer = "Steam"
      fields.base32 = String(link.unicodeScalars.dropFirst(steam.count).prefix { $0 != "?" })
      return try fields.entry(at: time)
    case "motp":
      throw EntryFault("a link of Mobile-OTP (motp://), which has no PIN; a file of Aegis or Stratum has one")
    case "otpauth-migration":
      throw EntryFault("a link of an export, which may have several entries; a file of such links is read")
    default: return try entry(otpauth: link, at: time)
    }
  }

  private static func entry(otpauth link: String, at time: Int64) throws(EntryFault) -> VaultEntry {
    let host = kind(of: link)
    guard let kind = host, !["totp", "hotp", "steam"].contains(kind) else {
      let uri = try uri(link)
      try check(uri, isSteamHost: host == "steam")
      return try withDisplay(uri, VaultEntry(uri, at: time))
    }
    // Other kinds are kept without a code.
    let rest = String(link.unicodeScalars.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" && $0 != "?" })
    let uri = try uri("otpauth://totp\(rest)")
    let kept = Dictionary(uri.otherParameters.map { ($0.name, JSONValue.string($0.value)) }) { first, _ in first }
    return VaultEntry(
      issuer: uri.issuer, account: uri.account, secret: uri.secret, kind: .other(kind), at: time,
      otherFields: ["otpauth": .object(kept)])
  }

  private static func uri(_ link: String) throws(EntryFault) -> OTPAuthURI {
    do throws(OTPAuthError) { return try OTPAuthURI(link) } catch { throw EntryFault("\(error)") }
  }

  /// Refuses Steam's codes with parameters of which this program knows no codes.
  ///
  /// KeePassXC, which writes `encoder=steam`, does not look at the digits; Aegis, which writes the host, does.
  private static func check(_ uri: OTPAuthURI, isSteamHost: Bool) throws(EntryFault) {
    guard uri.isSteam else { return }
    guard case .totp(let period) = uri.kind else { throw EntryFault("Steam's codes have no counter") }
    try EntryFields.checkSteam(
      digits: isSteamHost ? uri.digits : nil, period: period, algorithm: uri.algorithm.rawValue)
  }

  /// The host of a link, in lower case; `nil` if it is not a link of this scheme.
  private static func kind(of link: String) -> String? {
    let scheme = "otpauth://"
    guard link.beginsInEitherCase(with: scheme) else { return nil }
    return String(link.unicodeScalars.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }).lowercased()
  }

  /// What ente writes of groups and notes.
  private struct CodeDisplay: Decodable {
    let trashed: Bool?
    let note: String?
    let tags: [String]?
  }

  private static func withDisplay(_ uri: OTPAuthURI, _ entry: VaultEntry) throws(EntryFault) -> VaultEntry {
    guard let text = uri.otherParameters.first(where: { $0.name == "codeDisplay" })?.value else { return entry }
    guard JSONBounds.fault(in: Array(text.utf8), mostValues: JSONBounds.valuesForEntry) != .tooComplex else {
      throw EntryFault("its codeDisplay has too many values, or too many combining marks in a row")
    }
    guard let display = try? JSONDecoder().decode(CodeDisplay.self, from: Data(text.utf8)) else { return entry }
    if display.trashed == true { throw EntryFault("it is in the trash", isDiscarded: true) }
    var entry = entry
    entry.note = display.note ?? ""
    entry.tags = Set(display.tags ?? []).sorted()
    return entry
  }

  static func write(_ entries: [VaultEntry]) -> VaultWriter.Written {
    var lines: [String] = []
    var faults: [ImportFault] = []
    for entry in entries {
      // Five digits of the issuer Steam would be read as Steam's codes.
      if let link = entry.uri?.text, (try? Self.entry(link, at: 0))?.id == entry.codesID {
        lines.append(link + "\n")
      } else {
        faults.append(ImportFault(place: entry.name, reason: "no otpauth link describes codes of this kind"))
      }
    }
    return .init(bytes: Array(lines.joined().utf8), faults: faults)
  }
}
