internal import AuthenticatorVault
internal import Foundation

/// The tables (CSV) of password managers: Bitwarden, KeePassXC and 1Password. The first row names the columns.
///
/// Of each row the code, the names and the groups are read, never the password and the notes.
struct PasswordTable {
  /// The rows of a table for each entry that it may have: most passwords have no code.
  private static let rowsForEntry = 10
  /// The bytes of the first row, at most.
  private static let longestHeader = 4096

  /// The columns of a format, by their names without spaces, dashes and underscores, in lower case.
  private struct Columns {
    let code: [String]
    let issuer: [String]
    let account: [String]
    let groups: [String]
    /// How the app itself names the column with the code.
    let shownCode: String

    init?(_ format: VaultFormat) {
      switch format {
      case .bitwarden:
        code = ["logintotp"]
        issuer = ["name"]
        account = ["loginusername"]
        groups = ["folder", "collections"]
        shownCode = "login_totp"
      case .keePassXC:
        code = ["totp"]
        issuer = ["title"]
        account = ["username"]
        groups = ["group"]
        shownCode = "TOTP"
      case .onePassword:
        code = ["otpauth", "onetimepassword"]
        issuer = ["title"]
        account = ["username"]
        groups = ["tags"]
        shownCode = "OTPAuth"
      default: return nil
      }
    }
  }

  /// The names of the columns, as `Columns` has them.
  let names: [String]
  private let separator: UInt8
  private let content: ArraySlice<UInt8>

  /// The table that begins in `bytes`; `nil` if the first line does not name columns.
  init?(_ bytes: [UInt8]) {
    let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
    self.content = content
    let line = content.prefix(Self.longestHeader).prefix { $0 != 0x0A && $0 != 0x0D }
    // A remark, JSON or a list of links is none.
    guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }), !line.contains(UInt8(ascii: "{")),
      line.first != UInt8(ascii: "#")
    else { return nil }
    let separators = [UInt8(ascii: ","), UInt8(ascii: ";"), 0x09]
    let counts = separators.map { separator in line.count { $0 == separator } }
    guard let most = counts.max(), most > 0, let index = counts.firstIndex(of: most) else { return nil }
    separator = separators[index]
    var reader = TableReader(line, separator: separator)
    guard let fields = try? reader.next() else { return nil }
    let names = fields.map { field in
      String(decoding: field.content, as: UTF8.self).lowercased().filter { !" _-".contains($0) }
    }
    guard !names.contains(where: { $0.contains("://") }) else { return nil }
    self.names = names
  }

  /// The format whose columns these are.
  var format: VaultFormat? {
    let names = Set(names)
    if names.contains("logintotp") { return .bitwarden }
    if names.isSuperset(of: ["totp", "group"]) { return .keePassXC }
    let codes = Columns(.onePassword)?.code ?? []
    return names.contains("title") && !names.isDisjoint(with: codes) ? .onePassword : nil
  }

  /// Whether it may have codes, of whatever app.
  var mayHaveCodes: Bool { names.contains { ["totp", "otpauth", "otp", "otpsecret", "secret", "uri"].contains($0) } }

  /// Reads the rows that have a code.
  static func read(
    _ bytes: [UInt8], as format: VaultFormat, at time: Int64, most: Int
  ) throws(VaultFormatError) -> ImportedFile {
    guard let table = PasswordTable(bytes), let columns = Columns(format) else { throw .malformed(format) }
    func index(_ names: [String]) -> Int? { names.lazy.compactMap { table.names.firstIndex(of: $0) }.first }
    guard let code = index(columns.code) else {
      throw .unsupported(
        "the first row of the table names no column \(columns.shownCode)",
        hint: "export it from the app again, and keep the first row")
    }
    let (issuer, account, groups) = (index(columns.issuer), index(columns.account), index(columns.groups))
    var file = ImportedFile(format)
    var reader = TableReader(table.content, separator: table.separator)
    do throws(TableReader.Fault) {
      _ = try reader.next()
      while let fields = try reader.next() {
        guard reader.row <= most * rowsForEntry else { throw TableReader.Fault(row: 0, reason: "") }
        let row = Row(fields: fields, columns: table.names)
        let name = row.shownName(issuer, account)
        do throws(EntryFault) {
          guard let text = try row.code(at: code) else { continue }
          var entry = try SecretOrLink.entry(
            text, issuer: try row.text(at: issuer), account: try row.text(at: account), at: time)
          entry.tags = tags(try row.text(at: groups), format)
          file.entries.append(try EntryBounds.checked(entry))
        } catch {
          file.append(error, at: "row \(reader.row)" + (name.isEmpty ? "" : " (\(name))"))
        }
        guard file.entries.count + file.faults.count <= most else { throw TableReader.Fault(row: 0, reason: "") }
      }
    } catch {
      // No row has the number 0: the table is too long.
      throw error.row == 0 ? .tooLarge : .malformedTable(format, row: error.row, error.reason)
    }
    return file
  }

  /// The groups of a field. KeePassXC writes the path of one, from the root on; 1Password several with separators.
  private static func tags(_ text: String?, _ format: VaultFormat) -> [String] {
    let text = text ?? ""
    let parts: [Substring] =
      switch format {
      case .keePassXC: text.split(separator: "/", maxSplits: 1).dropFirst().map { $0 }
      case .onePassword: text.split { $0 == ";" || $0 == "," }
      default: [text[...]]
      }
    let names = parts.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
    return Set(names.filter { !$0.isEmpty }).sorted()
  }

  /// The fields of one row.
  private struct Row {
    let fields: [TableReader.Field]
    let columns: [String]

    /// The text in a column, which is checked before it is made; `nil` for an empty one.
    func text(at column: Int?) throws(EntryFault) -> String? {
      guard let column, fields.indices.contains(column), !fields[column].bytes.isEmpty else { return nil }
      let count = fields[column].bytes.count
      guard count <= JSONBounds.longestUnicodeText else {
        throw EntryFault(
          "the column \(columns[column]) has \(count) bytes; \(JSONBounds.longestUnicodeText) are the most")
      }
      guard let text = String(validating: fields[column].content, as: UTF8.self) else {
        throw EntryFault("the column \(columns[column]) is not UTF-8; save the table as UTF-8")
      }
      guard !CombiningMarks.areTooMany(in: text) else {
        throw EntryFault(
          "the column \(columns[column]) has more than \(CombiningMarks.most) combining marks in a row")
      }
      return text
    }

    /// The text of the code; `nil` if the row has none.
    ///
    /// - Throws: If the row does not have the fields that the first row names: the code may be in another column.
    func code(at column: Int) throws(EntryFault) -> String? {
      if fields.count == 1, fields[0].bytes.allSatisfy({ $0 == 0x20 }) { return nil }
      let rest = fields.dropFirst(columns.count)
      guard fields.count >= columns.count, rest.allSatisfy(\.bytes.isEmpty) else {
        throw EntryFault("it has \(fields.count) fields, and the first row names \(columns.count)")
      }
      guard let text = try text(at: column) else { return nil }
      return text.allSatisfy(\.isWhitespace) ? nil : text
    }

    /// The name for messages, as far as it can be read.
    func shownName(_ issuer: Int?, _ account: Int?) -> String {
      let parts = [issuer, account].map { (try? text(at: $0)).flatMap { $0 } }
      // By scalars: a character may have any number of them.
      return String(VaultFormats.shownName(parts[0], parts[1]).unicodeScalars.prefix(100))
    }
  }
}
