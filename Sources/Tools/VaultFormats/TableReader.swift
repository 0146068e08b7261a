/// Divides a table (CSV, RFC 4180) into rows.
///
/// A field in quotation marks may have separators, line ends and doubled quotation marks. Lines end with CR LF, LF or CR.
/// The text is read once, from front to back, and a field is no copy of it.
struct TableReader {
  /// The most fields of a row.
  static let mostFields = 256

  /// Why the rest of a table has no meaning.
  struct Fault: Error, Hashable {
    /// The row, from 1 on.
    let row: Int
    /// What is wrong with it.
    let reason: String
  }

  /// A field as it stands in the table, without the quotation marks around it.
  struct Field {
    let bytes: ArraySlice<UInt8>
    let isQuoted: Bool

    /// The bytes of the field, with one quotation mark for two.
    var content: [UInt8] {
      guard isQuoted, bytes.contains(TableReader.mark) else { return Array(bytes) }
      var content: [UInt8] = []
      var isSecond = false
      for byte in bytes {
        isSecond = byte == TableReader.mark && !isSecond
        if !isSecond { content.append(byte) }
      }
      return content
    }
  }

  private static let mark = UInt8(ascii: "\"")

  private let bytes: ArraySlice<UInt8>
  private let separator: UInt8
  private var position: Int
  /// The number of the row that was read last, from 1 on, as a spreadsheet shows it.
  private(set) var row = 0

  init(_ bytes: ArraySlice<UInt8>, separator: UInt8) {
    self.bytes = bytes
    self.separator = separator
    position = bytes.startIndex
  }

  /// The fields of the next row, at least one; `nil` at the end.
  mutating func next() throws(Fault) -> [Field]? {
    guard position < bytes.endIndex else { return nil }
    row += 1
    var fields = [try field()]
    while position < bytes.endIndex, bytes[position] == separator {
      guard fields.count < Self.mostFields else { throw fault("it has more than \(Self.mostFields) fields") }
      position += 1
      fields.append(try field())
    }
    if position < bytes.endIndex, bytes[position] == 0x0D { position += 1 }
    if position < bytes.endIndex, bytes[position] == 0x0A { position += 1 }
    return fields
  }

  /// Reads a field, up to the separator or the end of the line after it.
  private mutating func field() throws(Fault) -> Field {
    guard position < bytes.endIndex, bytes[position] == Self.mark else {
      let start = position
      position = bytes[start...].firstIndex { isEnd($0) } ?? bytes.endIndex
      return Field(bytes: bytes[start..<position], isQuoted: false)
    }
    let start = position + 1
    var next = start
    while let mark = bytes[next...].firstIndex(of: Self.mark) {
      if mark + 1 < bytes.endIndex, bytes[mark + 1] == Self.mark {
        next = mark + 2
        continue
      }
      position = mark + 1
      guard position == bytes.endIndex || isEnd(bytes[position]) else {
        throw fault("text follows the quotation mark that closes a field")
      }
      return Field(bytes: bytes[start..<mark], isQuoted: true)
    }
    throw fault("a quotation mark is not closed")
  }

  private func isEnd(_ byte: UInt8) -> Bool { byte == separator || byte == 0x0A || byte == 0x0D }

  private func fault(_ reason: String) -> Fault { Fault(row: row, reason: reason) }
}
