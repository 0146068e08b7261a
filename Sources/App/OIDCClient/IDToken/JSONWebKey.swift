internal import ByteCoding
internal import JWTKit

/// A public key of a JWKS for signatures (RFC 7517, RFC 7518 section 6, RFC 8037).
struct JSONWebKey: Decodable, Sendable {
  let kty: String
  let kid: String?
  let use: String?
  let alg: String?
  let key_ops: [String]?
  let crv: String?
  let x: String?
  let y: String?
  let n: String?
  let e: String?

  /// Members that choose the key must have their types. The numbers of the key are judged when a token needs them.
  init(from decoder: any Decoder) throws {
    let members = try ProviderMembers(from: decoder)
    kty = try members.text("kty").required(in: "a key")
    kid = try members.text("kid").usable(in: "a key")
    use = try members.text("use").usable(in: "a key")
    alg = try members.text("alg").usable(in: "a key")
    key_ops = try members.texts("key_ops").usable(in: "a key")
    crv = members.text("crv").value
    x = members.text("x").value
    y = members.text("y").value
    n = members.text("n").value
    e = members.text("e").value
  }

  /// The shortest modulus of RSA, in bytes: 2,048 bits (RFC 7518, section 3.3).
  private static let shortestModulus = 256

  /// Whether the members that are compared have the length of a name.
  var isBounded: Bool {
    [kty, use ?? "", alg ?? "", crv ?? ""].allSatisfy { $0.utf8.count <= 64 } && (kid ?? "").utf8.count <= 1024
      && (key_ops ?? []).count <= 16 && (key_ops ?? []).allSatisfy { $0.utf8.count <= 64 }
  }

  /// Whether the key may verify signatures at all.
  var isForSignatures: Bool { use ?? "sig" == "sig" && key_ops?.contains("verify") ?? true }

  /// Whether the key is one for `algorithm`: of its kind, its curve and its size, and not meant for another algorithm.
  func fits(_ algorithm: SignatureAlgorithm) -> Bool {
    if let alg, !algorithm.namesOfKey.contains(alg) { return false }
    return switch algorithm {
    case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
      kty == "RSA" && (n.flatMap { Base64URL.decode($0) }?.drop { $0 == 0 }.count ?? 0) >= Self.shortestModulus
    case .es256: kty == "EC" && crv == "P-256"
    case .es384: kty == "EC" && crv == "P-384"
    case .es512: kty == "EC" && crv == "P-521"
    case .eddsa, .ed25519: kty == "OKP" && crv == "Ed25519"
    }
  }

  /// Whether both are one key, as written, whatever they are called.
  func isSameKey(as other: JSONWebKey) -> Bool {
    [(kty, other.kty), (crv, other.crv), (x, other.x), (y, other.y), (n, other.n), (e, other.e)].allSatisfy {
      ($0 ?? "").isIdentical(to: $1 ?? "")
    }
  }

  /// A collection with this key alone.
  ///
  /// - Throws: An error of JWTKit if the key is malformed, for example not a point of its curve.
  func verifier(_ algorithm: SignatureAlgorithm) async throws -> JWTKeyCollection {
    let collection = JWTKeyCollection()
    let id = kid.map { JWKIdentifier(string: $0) }
    switch algorithm {
    case .rs256: await collection.add(rsa: try rsaKey(), digestAlgorithm: .sha256, kid: id)
    case .rs384: await collection.add(rsa: try rsaKey(), digestAlgorithm: .sha384, kid: id)
    case .rs512: await collection.add(rsa: try rsaKey(), digestAlgorithm: .sha512, kid: id)
    case .ps256: await collection.add(pss: try rsaKey(), digestAlgorithm: .sha256, kid: id)
    case .ps384: await collection.add(pss: try rsaKey(), digestAlgorithm: .sha384, kid: id)
    case .ps512: await collection.add(pss: try rsaKey(), digestAlgorithm: .sha512, kid: id)
    case .es256: await collection.add(ecdsa: try ES256PublicKey(parameters: (x ?? "", y ?? "")), kid: id)
    case .es384: await collection.add(ecdsa: try ES384PublicKey(parameters: (x ?? "", y ?? "")), kid: id)
    case .es512: await collection.add(ecdsa: try ES512PublicKey(parameters: (x ?? "", y ?? "")), kid: id)
    case .eddsa, .ed25519: await collection.add(eddsa: try EdDSA.PublicKey(x: x ?? "", curve: .ed25519), kid: id)
    }
    return collection
  }

  private func rsaKey() throws -> Insecure.RSA.PublicKey {
    try Insecure.RSA.PublicKey(modulus: n ?? "", exponent: e ?? "")
  }
}
