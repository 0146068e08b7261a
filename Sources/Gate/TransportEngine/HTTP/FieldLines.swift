internal import Transport

/// The field lines of a head that a `HeadScanner` has checked.
struct FieldLines {
  /// How values that are not UTF-8 are handled.
  enum OtherText {
    /// For clients: two readers could interpret such a value differently.
    case refused
    /// For upstreams: the gate does not use such values and forwards them unchanged. RFC 9110 section 5.5 asks
    /// recipients to treat them as opaque.
    case kept
  }

  private let bytes: UnsafeBufferPointer<UInt8>.SubSequence
  private let otherText: OtherText

  init(_ bytes: UnsafeBufferPointer<UInt8>.SubSequence, otherText: OtherText) {
    self.bytes = bytes
    self.otherText = otherText
  }

  /// Returns the fields in order, with values without surrounding white space.
  ///
  /// - Throws: `HeadError.fieldEncoding` for a value that is not UTF-8, if `otherText` is `.refused`.
  func fields() throws(HeadError) -> HeaderFields {
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
  ) throws(HeadError) -> HeaderFields.Field {
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
  /// Decodes `bytes` as UTF-8.
  ///
  /// HTTP allows values in any encoding; the gate accepts only UTF-8 as text.
  init(strictUTF8 bytes: UnsafeBufferPointer<UInt8>.SubSequence) throws(HeadError) {
    var validator = UTF8Validator()
    guard validator.consume(UnsafeBufferPointer(rebasing: bytes)), validator.isComplete else { throw .fieldEncoding }
    self = String(decoding: bytes, as: UTF8.self)
  }
}
