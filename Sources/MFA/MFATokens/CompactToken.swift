internal import ByteCoding

/// The compact serialization of a signed token: three base64url parts without padding, separated by dots (RFC 7515,
/// section 7.1).
enum CompactToken {
  /// Whether `text` is the canonical encoding of its bytes.
  ///
  /// JWTKit also accepts padding, the plain base64 alphabet and leftover bits, and the signature does not cover the
  /// encoding. Without this check, one token would have several valid texts.
  static func isCanonical(_ text: String) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 3 && parts.allSatisfy { Base64URL.decode($0)?.isEmpty == false }
  }
}
