#if os(Linux)
  /// The names that file synchronizers give to the losing one of two files.
  ///
  /// Only whole names of known forms count: a backup of the user's own, such as `vault.my-backup.x` or `vault-old.x`,
  /// is none of them.
  enum ConflictName {
    /// Whether `other` is the name of a conflict copy of the file `name`.
    ///
    /// - Parameter host: The name of this machine, which clients of OneDrive put into the names of their copies.
    static func isCopy(_ other: String, of name: String, host: String) -> Bool {
      // The longest of these names has fewer bytes, and no file system has longer ones.
      guard other.utf8.count <= 255 else { return false }
      let dot = name.lastIndex(of: ".") ?? name.endIndex
      let (stem, end) = (name[..<dot], name[dot...])
      // Some keep the ending, some put their words after it.
      for (before, after) in [(stem, end), (name[...], "")] {
        guard other.utf8.count > before.utf8.count + after.utf8.count, other.utf8.starts(with: before.utf8),
          other.utf8.reversed().starts(with: after.utf8.reversed())
        else { continue }
        let middle = Substring(other.utf8.dropFirst(before.utf8.count).dropLast(after.utf8.count))
        if isMark(String(middle), host: host) { return true }
      }
      return false
    }

    /// Whether `text` is what a synchronizer adds to a name.
    private static func isMark(_ text: String, host: String) -> Bool {
      if marks.contains(where: { text.contains($0.word) && text.wholeMatch(of: $0.value) != nil }) { return true }
      // OneDrive names a copy after the machine that made it.
      guard !host.isEmpty, text.utf8.starts(with: "-\(host)".utf8) else { return false }
      let rest = String(decoding: text.utf8.dropFirst(host.utf8.count + 1), as: UTF8.self)
      return rest.isEmpty || rest.wholeMatch(of: /-[0-9]{1,3}/) != nil
    }

    /// A pattern, and a word of it, which is looked for first. It is made once and never changed.
    private struct Mark: @unchecked Sendable {
      let word: String
      let value: Regex<Substring>

      init(_ word: String, _ value: Regex<Substring>) { (self.word, self.value) = (word, value) }
    }

    private static let marks: [Mark] = [
      // Syncthing: date, time, and since version 0.14.45 the device.
      Mark(".sync-conflict-", #/\.sync-conflict-[0-9]{8}-[0-9]{6}(?:-[A-Z2-7]{7})?/#),
      // Nextcloud and ownCloud, also with the user's name.
      Mark("(conflicted copy", #/ \(conflicted copy(?: [^()/]{1,80})? [0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{4,6})?\)/#),
      // Dropbox: (Anna's conflicted copy 2026-11-24), with a number where there are several.
      Mark(
        "conflicted copy",
        #/ \((?:[^()/]{1,80} )?conflicted copy(?: [0-9]{4}-[0-9]{2}-[0-9]{2}(?: \([0-9]{1,3}\))?)?\)/#),
      // ownCloud until version 2.4.
      Mark("_conflict-", #/_conflict-[0-9]{8}-[0-9]{6}/#),
      // Dropbox, of two names that differ in case.
      Mark("(Case Conflict", #/ \(Case Conflict(?: [0-9]{1,3})?\)/#),
      // Seafile.
      Mark("(SFConflict", #/ \(SFConflict [^()/]{1,80} [0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}-[0-9]{2}-[0-9]{2}\)/#),
      // Google Drive, and Dropbox for a file that was added twice.
      Mark(" (", #/ \([0-9]{1,3}\)/#),
      Mark("[Conflict", #/\[Conflict(?: [0-9]{1,3})?\]/#),
      // OneDrive on a Windows machine with the name of its setup, and its client for Linux.
      Mark("-", #/-(?:DESKTOP-[0-9A-Z]{7}|LAPTOP-[0-9A-Z]{8})(?:-[0-9]{1,3})?/#),
      Mark("-safeBackup-", #/-[A-Za-z0-9._-]{1,64}-safeBackup-[0-9]{4}/#),
    ]
  }
#endif
