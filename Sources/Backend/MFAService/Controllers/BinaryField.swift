internal import ByteCoding
internal import MFADomain

/// Decoding of the bytes in requests: signatures and the values of credentials.
///
/// Encoders differ where the bytes are the same, so any form that `Base64.decode(anyForm:)` accepts is read. Texts are
/// never compared.
enum BinaryField {
  /// The sizes of a signature that is looked at: DER of any P-256 signature, or 64 bytes.
  private static let signatureSizes = 8...96

  /// The signature of a device's key, in `text`.
  ///
  /// - Throws: `InvalidValue` with the size or form of what was sent.
  static func signature(_ text: String) throws(InvalidValue) -> [UInt8] {
    let bytes = Base64.decode(anyForm: text)
    guard let bytes, signatureSizes.contains(bytes.count) else {
      throw InvalidValue(
        field: "signature",
        rule: "must be an ECDSA signature in base64, DER or 64 bytes; " + sent(bytes))
    }
    return bytes
  }

  /// A value of at most `most` bytes in the JSON of a credential, whose own form is base64url without padding.
  static func credential(_ text: String, _ field: String, atMost most: Int) throws(InvalidValue) -> [UInt8] {
    let bytes = Base64.decode(anyForm: text)
    guard let bytes, (1...most).contains(bytes.count) else {
      throw InvalidValue(
        field: field, rule: "must be base64url without padding, of 1 to \(most) bytes; " + sent(bytes))
    }
    return bytes
  }

  private static func sent(_ bytes: [UInt8]?) -> String {
    bytes.map { "these are \($0.count) bytes" } ?? "this is not base64"
  }
}
