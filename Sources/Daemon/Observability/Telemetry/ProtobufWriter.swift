/// Writes the fields of a Protocol Buffers message (protobuf.dev, "Encoding").
///
/// A value that is its type's default is left out, as proto3 does, unless a function says otherwise.
struct ProtobufWriter {
  private(set) var bytes: [UInt8] = []

  private enum WireType: UInt64 {
    case varint = 0
    case fixed64 = 1
    case lengthDelimited = 2
  }

  mutating func varint(_ field: Int, _ value: UInt64) {
    guard value != 0 else { return }
    tag(field, .varint)
    append(varint: value)
  }

  /// The number of an enumeration, or an `int64`, as two's complement of 64 bits.
  mutating func integer(_ field: Int, _ value: Int64) { varint(field, UInt64(bitPattern: value)) }

  mutating func flag(_ field: Int, _ value: Bool) { varint(field, value ? 1 : 0) }

  /// A `fixed64`, in little endian.
  mutating func fixed64(_ field: Int, _ value: UInt64) {
    guard value != 0 else { return }
    tag(field, .fixed64)
    append(fixed64: value)
  }

  /// A `double` of a `oneof`, which is written whatever its value: its presence has a meaning.
  mutating func choice(_ field: Int, _ value: Double) {
    tag(field, .fixed64)
    append(fixed64: value.bitPattern)
  }

  /// An integer or a flag of a `oneof`.
  mutating func choice(_ field: Int, _ value: UInt64) {
    tag(field, .varint)
    append(varint: value)
  }

  /// Strings and bytes. One of a `oneof` is written even if it is empty.
  mutating func bytes(_ field: Int, _ value: some Collection<UInt8>, isChoice: Bool = false) {
    guard isChoice || !value.isEmpty else { return }
    tag(field, .lengthDelimited)
    append(varint: UInt64(value.count))
    bytes += value
  }

  mutating func text(_ field: Int, _ value: String, isChoice: Bool = false) {
    bytes(field, value.utf8, isChoice: isChoice)
  }

  /// A message, which is written even if it has no fields.
  mutating func message(_ field: Int, _ write: (inout ProtobufWriter) -> Void) {
    var inner = ProtobufWriter()
    write(&inner)
    bytes(field, inner.bytes, isChoice: true)
  }

  /// A packed list of `fixed64`.
  mutating func packed(_ field: Int, _ values: [UInt64]) {
    guard !values.isEmpty else { return }
    tag(field, .lengthDelimited)
    append(varint: UInt64(values.count * 8))
    for value in values { append(fixed64: value) }
  }

  private mutating func tag(_ field: Int, _ type: WireType) { append(varint: UInt64(field) << 3 | type.rawValue) }

  private mutating func append(varint value: UInt64) {
    var rest = value
    while rest > 0x7F {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  private mutating func append(fixed64 value: UInt64) {
    withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
  }
}
