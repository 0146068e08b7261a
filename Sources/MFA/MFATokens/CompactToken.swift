internal import ByteCoding

/// How a signed token is written: three parts in base64url without padding, with dots between (RFC 7515, section 7.1).
enum CompactToken {
  /// Whether `text` is written in the one way that its bytes have.
  ///
  /// JWTKit decodes padding, the alphabet of plain base64 and leftover bits as well, and the signature does not cover
  /// how it is written itself: without this check one token has several spellings.
  static func isCanonical(_ text: String) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 3 && parts.allSatisfy { Base64URL.decode($0)?.isEmpty == false }
  }
}
