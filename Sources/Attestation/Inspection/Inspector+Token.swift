internal import ByteCoding

extension Inspector {
  /// The three parts of a JWT (RFC 7515 section 7.1): each is base64url.
  mutating func token(in text: [UInt8], depth: Int) -> [InspectedNode] {
    let pieces = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard pieces.count == 3 else {
      return [.broken(at: 0, "\(pieces.count) parts with dots between them, and a JWT has 3")]
    }
    let names = ["header", "payload", "signature"]
    let meanings = [
      "how it is signed", "the claims", "of the text before the last dot; ES256: r and s, 32 bytes each",
    ]
    return pieces.indices.map { index in
      let piece = pieces[index]
      var node = InspectedNode(
        offset: piece.startIndex, length: piece.count, name: names[index], type: "base64url", meaning: meanings[index])
      guard let bytes = Base64URL.decode(String(decoding: piece, as: UTF8.self)) else {
        node.value = ValueText.text(piece)
        node.fault = "not base64url without padding"
        return node
      }
      guard index < 2 else {
        node.value = ValueText.hex(bytes[...])
        return node
      }
      node.meaning = meanings[index] + "; offsets below count from the first byte of the decoded text"
      node.children = object(
        in: bytes, bytes.indices, members: index == 0 ? Self.header : Self.claims, depth: depth + 1)
      return node
    }
  }

  private static let key: [String: TextMember] = [
    "jwk": TextMember("the public key of the client; it signs the proof"),
    "jwk.kty": TextMember("the kind of the key: EC is a curve"), "jwk.crv": TextMember("the curve"),
    "jwk.x": TextMember("a coordinate, base64url"), "jwk.y": TextMember("the other coordinate"),
  ]

  private static let header: [String: TextMember] = key.merging([
    "typ": TextMember("JWT for an identity, at+jwt for an access token, dpop+jwt for a proof"),
    "alg": TextMember("the algorithm; a verifier accepts one that it chose, here ES256"),
    "kid": TextMember("which key of /.well-known/sallyport/jwks.json has signed"),
  ]) { $1 }

  private static let claims: [String: TextMember] = [
    "iss": TextMember("who issued it: identity.issuer of the gate"),
    "aud": TextMember("the audience: every other service refuses it"),
    "sub": TextMember("the hash of the device's key"),
    "jti": TextMember("a unique id"),
    "iat": TextMember("the time of issue", .seconds),
    "nbf": TextMember("the start of validity", .seconds),
    "exp": TextMember("the end of validity", .seconds),
    "app": TextMember("the app, TEAMID.bundle.id or the package"),
    "client_id": TextMember("the app, as RFC 9068 names it"),
    "env": TextMember("production, development, or debug for a client certificate"),
    "method": TextMember("how the device proved itself: app-attest, android-key, mtls or none"),
    "htm": TextMember("the method of the request"),
    "htu": TextMember("the URL of the request, without query and fragment"),
    "ath": TextMember("base64url of the SHA-256 of the access token that the request carries"),
    "nonce": TextMember("what the server asked for; here the nonce of the challenge"),
    "route": TextMember("the path of the route, as it is configured"),
    "target": TextMember("base64url of the SHA-256 of the request's target"),
    "counter": TextMember("the counter of the key"),
    "category": TextMember("how the app was installed"),
    "security_level": TextMember("the hardware with the key: tee or strongbox"),
    "boot_state": TextMember("verified or self_signed"),
    "patch_level": TextMember("the month of the security patches"),
    "provisioning": TextMember("how the attestation key came into the device"),
    "risk": TextMember("the risk metric: about how many keys the device has attested"),
    "risk_at": TextMember("when the risk metric was reported, or rose last on Android", .seconds),
    "sid": TextMember("the session: the id of the request"),
    "client_ip": TextMember("the address of the client"),
    "subject": TextMember("the subject of the client certificate"),
    "cnf": TextMember("the key or certificate to which it is bound (RFC 7800)"),
    "cnf.jkt": TextMember("the thumbprint (RFC 7638) of the client's key"),
    "cnf.x5t#S256": TextMember("the hash of the client's certificate"),
  ]
}

extension Inspection.Kind {
  /// Which JWT has these parts.
  init(ofToken parts: [InspectedNode]) {
    func value(_ name: String, in part: Int) -> String? {
      guard parts.count == 3 else { return nil }
      return parts[part].children.first { $0.name.hasSameBytes(as: name) }?.value
    }
    switch value("typ", in: 0) {
    case "\"dpop+jwt\"": self = .proof
    case "\"at+jwt\"": self = .token
    default: self = value("method", in: 1) != nil && value("sid", in: 1) != nil ? .identity : .jwt
    }
  }
}
