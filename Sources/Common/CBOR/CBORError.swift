/// The rule that bytes break. Offsets count from the first byte.
public enum CBORError: Error, Sendable, Hashable {
  /// The input has more bytes than `CBORLimits.bytes`. No byte was read.
  case tooLong(Int, limit: Int)
  /// More data items than `CBORLimits.items`.
  case tooManyItems(limit: Int)
  /// Arrays, maps or tags inside of each other beyond `CBORLimits.depth`.
  case tooDeep(offset: Int)
  /// The bytes end inside of a data item.
  case truncated(offset: Int)
  /// There is no well-formed data item here, or a simple value that is not assigned, which libcbor does not support.
  case malformed(offset: Int)
  /// A string, array or map of indefinite length.
  case indefiniteLength(offset: Int)
  /// A number or length in more bytes than it needs, or a float in more than keep its value.
  case notShortest(offset: Int)
  /// A map has the same key twice; `offset` is that of the second one.
  case duplicateKey(offset: Int)
  /// A text string that is not UTF-8.
  case invalidText(offset: Int)
  /// There are bytes after the data item.
  case trailingBytes(offset: Int)
}

extension CBORError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLong(let count, let limit): "CBOR of \(count) bytes, where \(limit) are allowed"
    case .tooManyItems(let limit): "CBOR of more than \(limit) data items"
    case .tooDeep(let offset): "CBOR nested too deep at byte \(offset)"
    case .truncated(let offset): "CBOR ends inside of the data item at byte \(offset)"
    case .malformed(let offset): "no CBOR data item, or none that is supported, at byte \(offset)"
    case .indefiniteLength(let offset): "an indefinite length in CBOR at byte \(offset)"
    case .notShortest(let offset): "a CBOR number or length not in its shortest form at byte \(offset)"
    case .duplicateKey(let offset): "a CBOR map with the same key again at byte \(offset)"
    case .invalidText(let offset): "a CBOR text that is not UTF-8 at byte \(offset)"
    case .trailingBytes(let offset): "bytes behind the CBOR data item, from byte \(offset)"
    }
  }
}
