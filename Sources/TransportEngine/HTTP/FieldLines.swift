internal import Transport

/// The field lines of a head that a `HeadScanner` has gone over.
struct FieldLines {
  private let bytes: UnsafeBufferPointer<UInt8>.SubSequence

  init(_ bytes: UnsafeBufferPointer<UInt8>.SubSequence) { self.bytes = bytes }

  /// The fields in order, values without the white space around them.
  func fields() throws(HeadFault) -> HeaderFields {
    var fields: [HeaderFields.Field] = []
    fields.reserveCapacity(16)
    var rest = bytes
    while let colon = rest.firstIndex(of: .colon), let lineEnd = rest[colon...].firstIndex(of: .carriageReturn) {
      let value = try String(strictUTF8: trimmed(rest[(colon + 1)..<lineEnd]))
      fields.append(HeaderFields.Field(name: String(decoding: rest[..<colon], as: UTF8.self), value: value))
      rest = rest[lineEnd...].dropFirst(2)
    }
    return HeaderFields(fields)
  }

  private func trimmed(
    _ value: UnsafeBufferPointer<UInt8>.SubSequence
  ) -> UnsafeBufferPointer<UInt8>.SubSequence {
    var value = value
    while let first = value.first, first == .space || first == .tab { value.removeFirst() }
    while let last = value.last, last == .space || last == .tab { value.removeLast() }
    return value
  }
}

extension String {
  /// The text that `bytes` encode.
  ///
  /// HTTP lets values hold bytes of any encoding. Those that are not UTF-8 could not be handed on as they came, and
  /// two parties might read them differently, so they are refused.
  init(strictUTF8 bytes: UnsafeBufferPointer<UInt8>.SubSequence) throws(HeadFault) {
    var validator = UTF8Validator()
    guard validator.consume(UnsafeBufferPointer(rebasing: bytes)), validator.isComplete else { throw .fieldEncoding }
    self = String(decoding: bytes, as: UTF8.self)
  }
}
