internal import CPostgres

/// A value in PostgreSQL's binary form.
protocol BinaryValue: Sendable {
  /// The types that it is read from, the first of which it is sent as.
  static var types: [Oid] { get }
  init?(binary bytes: [UInt8])
  var binary: [UInt8] { get }
}

/// The numbers of built-in types (`pg_type.dat`); they never change.
private enum TypeNumber {
  static let bool: Oid = 16
  static let bytea: Oid = 17
  static let int8: Oid = 20
  static let int4: Oid = 23
  static let text: Oid = 25
  static let varchar: Oid = 1043
  static let byteaArray: Oid = 1001
}

extension [UInt8]: BinaryValue {
  static var types: [Oid] { [TypeNumber.bytea] }
  init?(binary bytes: [UInt8]) { self = bytes }
  var binary: [UInt8] { self }
}

extension Int64: BinaryValue {
  static var types: [Oid] { [TypeNumber.int8, TypeNumber.int4] }

  init?(binary bytes: [UInt8]) {
    switch bytes.count {
    case 8: self = bytes.reduce(0) { $0 << 8 | Int64($1) }
    case 4: self = Int64(Int32(truncatingIfNeeded: bytes.reduce(0 as Int64) { $0 << 8 | Int64($1) }))
    default: return nil
    }
  }

  var binary: [UInt8] { stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> Int64($0)) } }
}

extension Bool: BinaryValue {
  static var types: [Oid] { [TypeNumber.bool] }
  init?(binary bytes: [UInt8]) {
    guard bytes.count == 1 else { return nil }
    self = bytes[0] != 0
  }
  var binary: [UInt8] { [self ? 1 : 0] }
}

extension String: BinaryValue {
  static var types: [Oid] { [TypeNumber.text, TypeNumber.varchar] }
  init?(binary bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    self = text
  }
  var binary: [UInt8] { Array(utf8) }
}

/// `bytea[]`, of one dimension and without NULL.
struct ByteStrings: BinaryValue {
  static var types: [Oid] { [TypeNumber.byteaArray] }
  let elements: [[UInt8]]

  init(_ elements: [[UInt8]]) { self.elements = elements }
  /// Only sent, never read.
  init?(binary bytes: [UInt8]) { nil }

  // array_send: dimensions, a flag for NULLs, the elements' type; then length and lower bound of the one dimension.
  var binary: [UInt8] {
    func word(_ value: Int) -> ArraySlice<UInt8> { Int64(value).binary.suffix(4) }
    var bytes = [UInt8](word(elements.isEmpty ? 0 : 1) + word(0) + word(Int(TypeNumber.bytea)))
    if !elements.isEmpty { bytes += word(elements.count) + word(1) }
    for element in elements { bytes += word(element.count) + element }
    return bytes
  }
}

/// A value on its way to the server.
struct Parameter: Sendable {
  let type: Oid
  /// `nil` for NULL.
  let bytes: [UInt8]?

  init<Value: BinaryValue>(_ value: Value?) {
    // Every type of values names at least one of the server's.
    type = Value.types.first ?? 0
    bytes = value?.binary
  }
}
