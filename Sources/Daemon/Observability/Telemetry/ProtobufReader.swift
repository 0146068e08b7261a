/// Reads the fields of a Protocol Buffers message in their order, up to the first that is cut off or has an unknown type.
struct ProtobufReader: Sequence, IteratorProtocol {
  struct Field {
    enum Value {
      /// A varint, or a number of fixed length.
      case integer(UInt64)
      case bytes(ArraySlice<UInt8>)
    }

    let number: UInt64
    let value: Value
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  mutating func next() -> Field? {
    guard let tag = varint() else { return nil }
    let value: Field.Value?
    switch tag & 7 {
    case 0: value = varint().map(Field.Value.integer)
    case 1: value = fixed(8)
    case 2: value = varint().flatMap { take($0) }.map(Field.Value.bytes)
    case 5: value = fixed(4)
    default: value = nil
    }
    guard let value else {
      rest = []
      return nil
    }
    return Field(number: tag >> 3, value: value)
  }

  /// At most ten bytes; bits beyond 64 are dropped.
  private mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0 as UInt64, to: 70, by: 7) {
      guard let byte = rest.popFirst() else { return nil }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }

  private mutating func fixed(_ count: UInt64) -> Field.Value? {
    take(count).map { .integer($0.reversed().reduce(0) { $0 << 8 | UInt64($1) }) }
  }

  private mutating func take(_ count: UInt64) -> ArraySlice<UInt8>? {
    guard count <= UInt64(rest.count) else { return nil }
    defer { rest = rest.dropFirst(Int(count)) }
    return rest.prefix(Int(count))
  }
}
