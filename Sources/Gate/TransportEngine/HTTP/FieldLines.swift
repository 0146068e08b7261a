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
    var fields = HeaderFields()
    fields.reserve(Self.usualCount, bytes: bytes.count)
    var rest = bytes
    while let colon = rest.firstIndex(of: .colon), let lineEnd = rest[colon...].firstIndex(of: .carriageReturn) {
      let name = UnsafeBufferPointer(rebasing: rest[..<colon])
      let value = UnsafeBufferPointer(rebasing: trimmed(rest[(colon + 1)..<lineEnd]))
      let isText = Self.isUTF8(value)
      if !isText, otherText == .refused { throw .fieldEncoding }
      fields.append(name, value, isText: isText)
      rest = rest[lineEnd...].dropFirst(2)
    }
    return fields
  }

  /// The number of fields that most heads do not exceed, with those that the gate adds.
  private static let usualCount = 16

  private static func isUTF8(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
    // Looks at every byte, so that the compiler can take many at once.
    if value.reduce(0, |) < 0x80 { return true }
    var validator = UTF8Validator()
    return validator.consume(value) && validator.isComplete
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
