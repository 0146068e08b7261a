internal import Wire

extension Member {
  /// The value; `nil` if it is absent.
  ///
  /// - Throws: `.malformed` with the name, the value and `document`.
  func usable(in document: String) throws(OIDCError) -> Value? {
    if let fault { throw .malformed("\(document): \(fault)") }
    return value
  }

  /// The value, which must be there.
  func required(in document: String) throws(OIDCError) -> Value {
    guard let value = try usable(in: document) else { throw .malformed("\(document): \(name) is missing") }
    return value
  }
}
