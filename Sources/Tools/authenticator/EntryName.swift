internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

/// Finds an entry by a part of its name.
enum EntryName {
  /// The one of `entries` that `name` means.
  ///
  /// The first of these that fits any entry decides: the identifier; the whole name, issuer or account; the beginning
  /// of one of them; a part of the name. Case does not matter. Nor do marks over letters, if nothing fits with them.
  ///
  /// - Throws: `.noInput` if none fits, `.usage` if several do.
  static func find(_ name: String, in entries: [VaultEntry]) throws(Failure) -> VaultEntry {
    let wanted = name.lowercased()
    let plain = SearchText.plain(name)
    let rules: [(VaultEntry) -> Bool] = [
      { $0.id == wanted },
      { parts($0).contains(wanted) },
      { parts($0).map(SearchText.plain).contains(plain) },
      { parts($0).contains { $0.hasPrefix(wanted) } },
      { parts($0).contains { SearchText.plain($0).hasPrefix(plain) } },
      { $0.name.lowercased().contains(wanted) },
      { SearchText.plain($0.name).contains(plain) },
    ]
    for rule in rules {
      let found = entries.filter(rule)
      if found.count == 1 { return found[0] }
      guard found.isEmpty else {
        let names = found.prefix(8).map { $0.name.debugDescription }.joined(separator: ", ")
        throw Failure(
          .usage, "\(name.debugDescription) means \(found.count) entries: \(names)\(found.count > 8 ? ", …" : "")",
          hint: "write more of the name, or the identifier that `authenticator list --json` shows")
      }
    }
    let near = Suggestions.nearest(to: wanted, in: entries.flatMap(parts))
    throw Failure(
      .noInput, "there is no entry \(name.debugDescription)",
      hint: near.map { "did you mean \($0.debugDescription)?" } ?? "`authenticator list` shows the entries")
  }

  private static func parts(_ entry: VaultEntry) -> [String] {
    [entry.name, entry.issuer, entry.account, "\(entry.issuer):\(entry.account)"].map { $0.lowercased() }
      .filter { !$0.isEmpty }
  }
}

/// Text as a search compares it.
enum SearchText {
  /// The most of a text that is searched, in Unicode scalars.
  static let longest = 2000

  /// `text` without regard to case and to marks over letters: `strom` finds `Ström`.
  static func plain(_ text: String) -> String {
    String(text.unicodeScalars.prefix(longest))
      .folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil).lowercased()
  }
}
