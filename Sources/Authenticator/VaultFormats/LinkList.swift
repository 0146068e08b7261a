internal import AuthenticatorVault
internal import Foundation
internal import OneTimePasswords

/// Lists of `otpauth` links, one a line, as many authenticators write them.
enum LinkList {
  static func read(_ bytes: [UInt8], as format: VaultFormat, at time: Int64) -> ImportedFile {
    var file = ImportedFile(format)
    for (number, line) in lines(of: bytes) {
      do throws(EntryFault) {
        file.entries.append(try entry(line, at: time))
      } catch {
        file.faults.append(ImportFault(place: "line \(number)", reason: error.reason))
      }
    }
    return file
  }

  /// The lines that say something, with their numbers from 1 on.
  static func lines(of bytes: [UInt8]) -> [(number: Int, text: String)] {
    String(decoding: bytes, as: UTF8.self).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated().compactMap { index, line in
        let text = line.trimmingCharacters(in: .whitespaces.union(["\u{FEFF}"]))
        return text.isEmpty || text.hasPrefix("#") ? nil : (index + 1, text)
      }
  }

  /// The entry of a link, also of one that an application wrote like a form: with a `+` for a space.
  static func entry(_ link: String, at time: Int64) throws(EntryFault) -> VaultEntry {
    let kind = kind(of: link)
    // A host `steam` is a way to write the kind of the code; other kinds are kept without a code.
    let unknownKind = kind.flatMap { ["totp", "hotp", "steam"].contains($0) ? nil : $0 }
    var readable = link
    if let kind, kind != "totp", kind != "hotp" {
      let rest = link.drop { $0 != ":" }.dropFirst(3 + kind.count)
      readable = "otpauth://totp\(rest)" + (kind == "steam" ? "&encoder=steam" : "")
    }
    var uri = try uri(readable)
    if uri.issuer.contains("+"), let label = labelIssuer(of: link), label == uri.issuer.replacing("+", with: " ") {
      uri.issuer = label
    }
    if let unknownKind {
      let kept = Dictionary(uri.otherParameters.map { ($0.name, JSONValue.string($0.value)) }) { first, _ in first }
      return VaultEntry(
        issuer: uri.issuer, account: uri.account, secret: uri.secret, kind: .other(unknownKind), at: time,
        otherFields: ["otpauth": .object(kept)])
    }
    return try withDisplay(uri, VaultEntry(uri, at: time))
  }

  /// Reads a link. OTPClient writes Steam's codes as TOTP of five digits with the issuer Steam.
  private static func uri(_ link: String) throws(EntryFault) -> OTPAuthURI {
    do throws(OTPAuthError) {
      return try OTPAuthURI(link)
    } catch {
      if error == .invalidParameter("digits", "5"), let uri = try? OTPAuthURI(link + "&encoder=steam"),
        uri.issuer.lowercased() == "steam"
      {
        return uri
      }
      throw EntryFault("\(error)")
    }
  }

  /// The host of a link, in lower case; `nil` if it is not a link of this scheme.
  private static func kind(of link: String) -> String? {
    let scheme = "otpauth://"
    guard link.lowercased().hasPrefix(scheme) else { return nil }
    return link.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" }.lowercased()
  }

  /// What ente writes of groups and notes.
  private struct CodeDisplay: Decodable {
    let trashed: Bool?
    let note: String?
    let tags: [String]?
  }

  private static func withDisplay(_ uri: OTPAuthURI, _ entry: VaultEntry) throws(EntryFault) -> VaultEntry {
    guard let text = uri.otherParameters.first(where: { $0.name == "codeDisplay" })?.value,
      let display = try? JSONDecoder().decode(CodeDisplay.self, from: Data(text.utf8))
    else { return entry }
    if display.trashed == true { throw EntryFault("it is in the trash") }
    var entry = entry
    entry.note = display.note ?? ""
    entry.tags = Set(display.tags ?? []).sorted()
    return entry
  }

  private static func labelIssuer(of link: String) -> String? {
    let path = link.prefix { $0 != "?" }
    guard let slash = path.lastIndex(of: "/") else { return nil }
    let label = path[path.index(after: slash)...]
    let issuer =
      label.firstIndex(of: ":").map { label[..<$0] } ?? label.ranges(of: "%3A").first.map { label[..<$0.lowerBound] }
    return issuer.flatMap { String($0).removingPercentEncoding }
  }

  static func write(_ entries: [VaultEntry]) -> VaultWriter.Written {
    var lines: [String] = []
    var faults: [ImportFault] = []
    for entry in entries {
      // A link has six to eight digits, an entry five to ten.
      if let link = entry.uri?.text, (try? Self.entry(link, at: 0))?.id == entry.id {
        lines.append(link + "\n")
      } else {
        faults.append(ImportFault(place: entry.name, reason: "no otpauth link describes codes of this kind"))
      }
    }
    return .init(bytes: Array(lines.joined().utf8), faults: faults)
  }
}
