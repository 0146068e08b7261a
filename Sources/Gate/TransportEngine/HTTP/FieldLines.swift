internal import Transport

/// The field lines of a head that a `HeadScanner` has gone over.
struct FieldLines {
  /// What becomes of values that are not UTF-8.
  enum OtherText {
    /// A client's: two parties that are to act on them might read them differently.
    case refused
    /// An upstream's: they mean nothing to the gate and go on as they came. RFC 9110 section 5.5 has a recipient take them
    /// for opaque.
    case kept
  }

  private let bytes: UnsafeBufferPointer<UInt8>.SubSequence
  private let otherText: OtherText

  init(_ bytes: UnsafeBufferPointer<UInt8>.SubSequence, otherText: OtherText) {
    self.bytes = bytes
    self.otherText = otherText
  }

  /// The fields in order, values without the white space around them.
  func fields() throws(HeadFault) -> HeaderFields {
    var fields: [HeaderFields.Field] = []
    fields.reserveCapacity(16)
    var rest = bytes
    while let colon = rest.firstIndex(of: .colon), let lineEnd = rest[colon...].firstIndex(of: .carriageReturn) {
      let name = String(decoding: rest[..<colon], as: UTF8.self)
      fields.append(try field(name, trimmed(rest[(colon + 1)..<lineEnd])))
      rest = rest[lineEnd...].dropFirst(2)
    }
    return HeaderFields(fields)
  }

  private func field(
    _ name: String, _ value: UnsafeBufferPointer<UInt8>.SubSequence
  ) throws(HeadFault) -> HeaderFields.Field {
    do {
      return HeaderFields.Field(name: name, value: try String(strictUTF8: value))
    } catch {
      guard otherText == .kept else { throw error }
      return HeaderFields.Field(name: name, octets: Array(value))
    }
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
  /// HTTP lets values hold bytes of any encoding; those that are not UTF-8 are no text here.
  init(strictUTF8 bytes: UnsafeBufferPointer<UInt8>.SubSequence) throws(HeadFault) {
    var validator = UTF8Validator()
    guard validator.consume(UnsafeBufferPointer(rebasing: bytes)), validator.isComplete else { throw .fieldEncoding }
    self = String(decoding: bytes, as: UTF8.self)
  }
}
