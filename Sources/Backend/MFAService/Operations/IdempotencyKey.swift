/// The name that a client gives to a call, so that it can repeat the call.
struct IdempotencyKey: Sendable, Hashable {
  let text: String

  /// - Throws: `OperationInputError.idempotencyKeyMalformed` unless `text` has 1 to 128 visible ASCII characters.
  init(_ text: String) throws(OperationInputError) {
    guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .idempotencyKeyMalformed
    }
    self.text = text
  }
}
