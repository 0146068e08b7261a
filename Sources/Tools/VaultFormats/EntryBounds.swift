public import AuthenticatorVault

/// How long the texts of an entry are at most, and how many combining marks in a row they have, where it comes in and
/// where it goes out.
///
/// A vault that another program wrote may have others. They are kept, and an export names their entries.
public enum EntryBounds {
  /// The bytes of an issuer, of an account and of a group.
  public static let longestName = 4096
  /// The bytes of a note. Written as JSON, with two bytes for each end of a line and each quotation mark, it is not
  /// longer than `JSONBounds.longestUnicodeText`.
  public static let longestNote = 16_384
  /// The groups of an entry.
  public static let mostGroups = 32

  /// What is too long, with its length, or has too many combining marks in a row; `nil` if nothing is.
  public static func fault(
    issuer: String? = nil, account: String? = nil, note: String? = nil, tags: [String] = []
  ) -> String? {
    let texts =
      [("issuer", issuer, longestName), ("account", account, longestName), ("note", note, longestNote)]
      + tags.map { ("name of a group", $0, longestName) }
    for (part, text, most) in texts {
      guard let text else { continue }
      let count = text.utf8.count
      if count > most { return "the \(part) has \(count) bytes; \(most) are the most" }
      // Each command sorts the entries by their names.
      if let fault = CombiningMarks.fault(in: text, part) { return fault }
    }
    return tags.count > mostGroups ? "it is in \(tags.count) groups; \(mostGroups) are the most" : nil
  }

  /// The same for the texts of `entry`.
  public static func fault(in entry: VaultEntry) -> String? {
    fault(issuer: entry.issuer, account: entry.account, note: entry.note, tags: entry.tags)
  }

  static func checked(_ entry: VaultEntry) throws(EntryFault) -> VaultEntry {
    if let fault = fault(in: entry) { throw EntryFault(fault) }
    return entry
  }
}
