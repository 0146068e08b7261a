internal import MFADomain

extension String {
  /// The text as the value of the token field `field`.
  ///
  /// - Throws: `InvalidValue` if the text has more than 128 characters. No valid token is that long, and the token is
  ///   hashed and stored.
  func checked(_ field: String) throws(InvalidValue) -> String {
    guard unicodeScalars.count <= 128 else { throw InvalidValue(field: field, rule: "must not exceed 128 characters") }
    return self
  }
}

extension String? {
  func checked(_ field: String) throws(InvalidValue) -> String? {
    guard let self else { return nil }
    return try self.checked(field)
  }
}
