internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

/// The entries as the lines of a picker, such as rofi, fzf or dmenu, and the entry of the line that it returns.
///
/// A line is a name and nothing else. Characters that steer a terminal or end a line are replaced, and no two lines are
/// the same.
struct PickerLines {
  private let entries: [VaultEntry]
  let lines: [String]

  init(_ entries: [VaultEntry]) {
    self.entries = entries
    var used: Set<[UInt8]> = []
    lines = entries.map { entry in
      let name = TerminalText.printable(String(entry.name.unicodeScalars.prefix(ListFrame.longestName)))
        .trimmingCharacters(in: .whitespaces)
      var line = name
      var number = 2
      // By bytes: a picker does not know which texts Unicode calls equivalent.
      while !used.insert(Array(line.utf8)).inserted {
        line = "\(name) (\(number))"
        number += 1
      }
      return line
    }
  }

  /// The entry of `line`, as the picker returned it.
  ///
  /// - Throws: `.noInput` for an empty line, which a picker prints that was left, and for one that no entry has.
  func entry(of line: String) throws(Failure) -> VaultEntry {
    let line = line.trimmingCharacters(in: .whitespaces)
    guard !line.isEmpty else { throw Failure(.noInput, "no entry was chosen") }
    guard let index = lines.firstIndex(where: { $0.utf8.elementsEqual(line.utf8) }) else {
      throw Failure(
        .noInput, "no entry has the line \(line.prefix(200).debugDescription)",
        hint: "`authenticator list --lines` prints the lines that --select reads")
    }
    return entries[index]
  }
}
