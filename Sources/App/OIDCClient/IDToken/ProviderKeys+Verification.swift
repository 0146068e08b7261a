@_exported public import Wire
internal import JWTKit

extension ProviderKeys {
  /// Reads a JWKS. Keys for encryption and malformed ones are left out.
  ///
  /// - Throws: `.malformed` if the document is none.
  public init(json: [UInt8]) throws(OIDCError) {
    guard let keys = ProviderKeys(document: json) else { throw .malformed("the provider's keys are no JWKS") }
    self = keys
  }

  /// Verifies the signature with the one key that fits the header.
  ///
  /// - Throws: `.algorithm`, `.unknownKey`, `.ambiguousKey`, `.signature`.
  func verify(_ token: IDToken) async throws(IDTokenRejection) {
    let (key, algorithm) = try key(for: token)
    try await SwiftCryptography().verify(token, with: key, algorithm)
  }
}

extension IDTokenVerifier {
  /// Uses the keys of the provider.
  public init(keys: ProviderKeys) { self.init(keys: keys, cryptography: SwiftCryptography()) }
}

/// The cryptography of ID tokens by JWTKit and swift-crypto.
struct SwiftCryptography: Sendable {
  func verify(
    _ token: IDToken, with key: ProviderKey, _ algorithm: SignatureAlgorithm
  ) async throws(IDTokenRejection) {
    let collection: JWTKeyCollection
    do { collection = try await key.verifier(algorithm) } catch { throw .unknownKey(token.keyID) }
    do { _ = try await collection.verify(token.text, as: AnyPayload.self) } catch { throw .signature }
  }

  /// The claims are checked by rules of their own.
  private struct AnyPayload: JWTPayload {
    func verify(using algorithm: some JWTAlgorithm) {}
  }
}

extension ProviderKey {
  /// A collection with this key alone.
  ///
  /// - Throws: An error of JWTKit if the key is malformed, for example not a point of its curve.
  fileprivate func verifier(_ algorithm: SignatureAlgorithm) async throws -> JWTKeyCollection {
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
