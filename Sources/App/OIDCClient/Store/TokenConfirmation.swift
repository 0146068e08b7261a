internal import ByteCoding

/// What an access token is bound to, as far as the token says (RFC 7800, section 3.1). A client that cannot use the key
/// cannot use the token.
public enum TokenConfirmation: Sendable, Hashable {
  /// The client's certificate: its SHA-256 hash in base64url, `x5t#S256` (RFC 8705, section 3.1).
  case certificate(String)
  /// A key of the client: its thumbprint, `jkt` (RFC 9449, section 6.1).
  case key(String)

  /// Reads `cnf` of a token that is a JWT. Its signature is not verified: the claim is shown, and nothing is decided by
  /// it.
  ///
  /// - Returns: `nil` if the token is no JWT, or has no such claim.
  public init?(accessToken: String) {
    struct Document: Decodable {
      let certificate: String?
      let key: String?

      init(from decoder: any Decoder) throws {
        let confirmation = try ProviderMembers(from: decoder).members(of: "cnf")
        certificate = confirmation?.text("x5t#S256").value
        key = confirmation?.text("jkt").value
      }
    }
    guard accessToken.utf8.count <= IDToken.longest else { return nil }
    let parts = accessToken.split(atBytes: UInt8(ascii: "."))
    guard parts.count == 3, let claims = Base64URL.decode(parts[1]),
      let document = try? ProviderJSON.decode(Document.self, ofToken: claims)
    else { return nil }
    // A SHA-256 hash.
    for (text, make) in [(document.certificate, Self.certificate), (document.key, Self.key)] {
      if let text, Base64URL.decode(text)?.count == 32 {
        self = make(text)
        return
      }
    }
    return nil
  }
}
