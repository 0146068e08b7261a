package import CPostgres

/// A value in PostgreSQL's binary form.
package protocol BinaryValue: Sendable {
  /// The server's types that the value is read from. It is sent as the first of them.
  static var types: [Oid] { get }
  init?(binary bytes: [UInt8])
  var binary: [UInt8] { get }
}

/// The numbers of built-in types (`pg_type.dat`). They never change.
package enum PostgresType {
  package static let bool: Oid = 16
  package static let bytea: Oid = 17
  package static let int8: Oid = 20
  package static let int4: Oid = 23
  package static let text: Oid = 25
  package static let varchar: Oid = 1043
  package static let byteaArray: Oid = 1001
}

extension [UInt8]: BinaryValue {
  package static var types: [Oid] { [PostgresType.bytea] }
  package init?(binary bytes: [UInt8]) { self = bytes }
  package var binary: [UInt8] { self }
}

extension Int64: BinaryValue {
  package static var types: [Oid] { [PostgresType.int8, PostgresType.int4] }

  package init?(binary bytes: [UInt8]) {
    switch bytes.count {
    case 8: self = bytes.reduce(0) { $0 << 8 | Int64($1) }
    case 4: self = Int64(Int32(truncatingIfNeeded: bytes.reduce(0 as Int64) { $0 << 8 | Int64($1) }))
    default: return nil
    }
  }

  package var binary: [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> Int64($0)) }
  }
}

extension Bool: BinaryValue {
  package static var types: [Oid] { [PostgresType.bool] }

  package init?(binary bytes: [UInt8]) {
    guard bytes.count == 1 else { return nil }
    self = bytes[0] != 0
  }

  package var binary: [UInt8] { [self ? 1 : 0] }
}

extension String: BinaryValue {
  package static var types: [Oid] { [PostgresType.text, PostgresType.varchar] }

  package init?(binary bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    self = text
  }

  package var binary: [UInt8] { Array(utf8) }
}

/// A `bytea[]` with one dimension and without NULL. It is sent, never read.
package struct ByteStrings: BinaryValue {
  package static var types: [Oid] { [PostgresType.byteaArray] }
  private let elements: [[UInt8]]

  package init(_ elements: [[UInt8]]) { self.elements = elements }
  package init?(binary bytes: [UInt8]) { nil }

  // The layout of `array_send`: number of dimensions, a flag for NULLs, the type of the elements; then length and lower
  // bound of the dimension; then each element after its length.
  package var binary: [UInt8] {
    func word(_ value: Int) -> ArraySlice<UInt8> { Int64(value).binary.suffix(4) }
    var bytes = [UInt8](word(elements.isEmpty ? 0 : 1) + word(0) + word(Int(PostgresType.bytea)))
    if !elements.isEmpty { bytes += word(elements.count) + word(1) }
    for element in elements { bytes += word(element.count) + element }
    return bytes
  }
}

/// A value that is sent with a statement.
package struct Parameter: Sendable {
  /// The form in which libpq sends a value.
  enum Format: Int32 { case text = 0, binary = 1 }

  /// 0 lets the server choose the type by the position of the parameter.
  let type: Oid
  let format: Format
  /// `nil` for NULL.
  let bytes: [UInt8]?
  /// Whether it is a text with U+0000. PostgreSQL cannot store one, and libpq reads the text form up to the first.
  let hasNull: Bool

  package init<Value: BinaryValue>(_ value: Value?) {
    // Every value names at least one type of the server's.
    type = Value.types.first ?? 0
    format = .binary
    bytes = value?.binary
    hasNull = Value.self == String.self && bytes?.contains(0) == true
  }

  private init(text: String?) {
    type = 0
    format = .text
    bytes = text.map { Array($0.utf8) + [0] }
    hasNull = text?.utf8.contains(0) == true
  }

  /// Creates a value in text form, whose type the server chooses by its position. `nil` is NULL.
  package static func untyped(_ text: String?) -> Parameter { Parameter(text: text) }
}
