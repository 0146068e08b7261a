internal import ByteCoding

/// A public key of a JWKS for signatures (RFC 7517, RFC 7518 section 6, RFC 8037).
package struct ProviderKey: Decodable, Sendable {
  package let kty: String
  package let kid: String?
  package let use: String?
  package let alg: String?
  package let key_ops: [String]?
  package let crv: String?
  package let x: String?
  package let y: String?
  package let n: String?
  package let e: String?

  /// Members that choose the key must have their types. The numbers of the key are judged when a token needs them.
  package init(from decoder: any Decoder) throws {
    let members = try ProviderMembers(from: decoder)
    func usable<Value>(_ member: Member<Value>) throws -> Value? {
      guard member.fault == nil else { throw Unusable() }
      return member.value
    }
    guard let kty = try usable(members.text("kty")) else { throw Unusable() }
    self.kty = kty
    kid = try usable(members.text("kid"))
    use = try usable(members.text("use"))
    alg = try usable(members.text("alg"))
    key_ops = try usable(members.texts("key_ops"))
    crv = members.text("crv").value
    x = members.text("x").value
    y = members.text("y").value
    n = members.text("n").value
    e = members.text("e").value
  }

  /// A member that chooses the key has another type, or none is there.
  private struct Unusable: Error {}

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
  func isSameKey(as other: ProviderKey) -> Bool {
    [(kty, other.kty), (crv, other.crv), (x, other.x), (y, other.y), (n, other.n), (e, other.e)].allSatisfy {
      ($0 ?? "").isIdentical(to: $1 ?? "")
    }
  }
}
