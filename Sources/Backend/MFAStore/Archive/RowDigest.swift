internal import Crypto
internal import Foundation

/// A SHA-256 over rows: table, columns and values, each with its type and length.
struct RowDigest {
  private var hash = SHA256()
  private(set) var count: Int64 = 0

  mutating func add(_ rows: [SQLRow], of table: String) {
    for row in rows {
      count += 1
      add(Array(table.utf8), as: 0)
      for (column, value) in zip(row.columns, row.values) {
        add(Array(column.utf8), as: 1)
        switch value {
        case .null: add([], as: 2)
        case .integer(let number): add(Array(String(number).utf8), as: 3)
        case .text(let text): add(Array(text.utf8), as: 4)
        case .blob(let bytes): add(bytes, as: 5)
        }
      }
    }
  }

  private mutating func add(_ bytes: [UInt8], as kind: UInt8) {
    hash.update(data: [kind])
    withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { hash.update(bufferPointer: $0) }
    hash.update(data: bytes)
  }

  /// The 32 bytes of the digest.
  var bytes: [UInt8] { Array(hash.finalize()) }
}
