internal import MFADomain

extension String {
  /// A token as the field `field` has it.
  ///
  /// - Throws: if it is longer than its schema allows: no token of ours is, and what is handed on is hashed and kept.
  func checked(_ field: String) throws(InvalidValue) -> String {
    guard unicodeScalars.count <= 128 else { throw InvalidValue(field: field, rule: "has at most 128 characters") }
    return self
  }
}

extension String? {
  func checked(_ field: String) throws(InvalidValue) -> String? {
    guard let self else { return nil }
    return try self.checked(field)
  }
}
