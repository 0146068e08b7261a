internal import Foundation

/// The header of a client attestation (draft-ietf-oauth-attestation-based-client-auth).
struct AttestationHeader: Decodable {
  static let type = "oauth-client-attestation+jwt"

  private let type: Member<String>
  private let algorithm: Member<String>

  init(from decoder: any Decoder) throws {
    let members = try ProviderMembers(from: decoder)
    type = members.text("typ")
    algorithm = members.text("alg")
  }

  /// - Throws: `.attestation` if it is the header of another JWT, or names no signature.
  func judge() throws(OIDCError) {
    guard let type = type.value, type.isIdentical(to: Self.type) else {
      throw .attestation("its typ is \(ShownValue.quoted(type.value ?? "")), not \(Self.type)")
    }
    // A MAC is by a key that the provider has too, so that it says nothing about the attester.
    guard let name = algorithm.value, name.lowercased() != "none", !name.uppercased().hasPrefix("HS") else {
      throw .attestation("its alg is \(ShownValue.quoted(algorithm.value ?? "")), which is no signature")
    }
  }
}

/// The claims of a client attestation.
struct AttestationClaims: Decodable {
  /// The difference between the clocks of the attester and this machine that is allowed, in seconds.
  private static let clockSkew = ProviderVariations.usualClockSkew
  /// The members of a JWK that are parts of a private or secret key (RFC 7518, section 6).
  private static let privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

  private let subject: Member<String>
  private let end: Member<Double>
  private let start: Member<Double>
  private let issue: Member<Double>
  private let key: PublicKey?

  private struct PublicKey {
    let type: String?
    let curve: String?
    let x: String?
    let y: String?
    let privateMember: String?
  }

  init(from decoder: any Decoder) throws {
    let members = try ProviderMembers(from: decoder)
    subject = members.text("sub")
    end = members.numericDate("exp")
    start = members.numericDate("nbf")
    issue = members.numericDate("iat")
    key = members.members(of: "cnf")?.members(of: "jwk").map { jwk in
      PublicKey(
        type: jwk.text("kty").value, curve: jwk.text("crv").value, x: jwk.text("x").value, y: jwk.text("y").value,
        privateMember: Self.privateMembers.first(where: jwk.has))
    }
  }

  /// Judges the claims for the client and its key.
  ///
  /// - Returns: When the attestation ends.
  /// - Throws: `.attestation`.
  func judge(key expected: DPoPKey, clientID: String, now: Date) throws(OIDCError) -> Date {
    guard let subject = subject.value, subject.isIdentical(to: clientID) else {
      throw .attestation("it is for \(ShownValue.quoted(subject.value ?? "")), not for this client")
    }
    guard let end = end.value else { throw .attestation(end.fault ?? "it has no exp") }
    guard end > now.timeIntervalSince1970 else { throw .attestation("it has ended") }
    for time in [start, issue] {
      if let fault = time.fault { throw .attestation(fault) }
      guard time.value ?? 0 <= now.timeIntervalSince1970 + Self.clockSkew else {
        throw .attestation("its \(time.name) is in the future: compare the clocks of the attester and this machine")
      }
    }
    guard let key else { throw .attestation("it has no cnf with a jwk") }
    // The attester, its log and the provider would know the key.
    if let name = key.privateMember {
      throw .attestation("its cnf contains the private key (\(name)): make a new key, and mend the attester")
    }
    guard key.type.map("EC".isIdentical) == true, key.curve.map("P-256".isIdentical) == true else {
      throw .attestation("the key of its cnf is not one on P-256 (kty EC, crv P-256)")
    }
    guard let x = key.x, let y = key.y, expected.isKey(x: x, y: y) else {
      throw .attestation("it is for another key than the one that signs the proofs")
    }
    return Date(timeIntervalSince1970: end)
  }
}
