internal import ByteCoding
internal import CBOR
internal import Cryptography
public import MFAClient
public import MFAWire

/// A credential of the security key at the phone (Web Authentication Level 3). The private half has no way out.
struct SecurityCredential: Sendable {
  /// 32 random bytes, in base64url.
  let id: String
  /// The domain of the relying party.
  let party: String
  let privateKey: P256PrivateKey
  /// Counts the signatures.
  var count: UInt32 = 0

  /// The authenticator data (section 6.1): a user who is present and was verified by a PIN.
  func authenticatorData(withPublicKey: Bool) throws(CryptographyError) -> [UInt8] {
    var data = SHA256.hash(Array(party.utf8)) + [withPublicKey ? 0x45 : 0x05]
    data += withUnsafeBytes(of: count.bigEndian) { Array($0) }
    guard withPublicKey, let id = Base64URL.decode(id) else { return data }
    data += [UInt8](repeating: 0, count: 16) + [UInt8(id.count >> 8), UInt8(id.count & 0xFF)] + id
    // A COSE key (RFC 9053 section 7.1.1): EC2, ES256, P-256.
    let point = privateKey.publicKey.x963
    let key = CBORValue.map([1: 2, 3: -7, -1: 1, -2: .bytes(Array(point[1..<33])), -3: .bytes(Array(point[33...]))])
    return data + key.encoded
  }
}

extension SimulatedPhone: SecurityKeyService {
  private static let noKey = SecurityKeyError.other("The server accepts no security key with P-256.")
  private static let unusable = SecurityKeyError.other("The security key failed.")

  /// Makes a credential, after a prompt to touch the key.
  public func register(_ options: CredentialCreationOptions) async throws(SecurityKeyError) -> RegistrationRequest {
    guard options.pubKeyCredParams.contains(where: { $0.alg == -7 }) else { throw Self.noKey }
    let excluded = options.excludeCredentials.map(\.id)
    guard !credentials.contains(where: { excluded.contains($0.id) }) else { throw .knownKey }
    try await touch(reason: "Register a security key at \(options.rp.name)")
    let data = clientData("webauthn.create", options.challenge, options.rp.id)
    do {
      let id = Base64URL.encode(SecureRandom.bytes(32))
      let credential = SecurityCredential(id: id, party: options.rp.id, privateKey: try P256PrivateKey())
      let object = CBORValue.map([
        "fmt": "none", "attStmt": .map([:]), "authData": .bytes(try credential.authenticatorData(withPublicKey: true)),
      ])
      try keep(credential)
      return RegistrationRequest(
        id: id, rawId: id, type: "public-key",
        response: .init(
          clientDataJSON: Base64URL.encode(data), attestationObject: Base64URL.encode(object.encoded),
          transports: ["usb", "nfc"]))
    } catch {
      throw Self.unusable
    }
  }

  /// Signs the challenge, after a prompt to touch the key.
  public func prove(_ options: CredentialRequestOptions) async throws(SecurityKeyError) -> AuthenticationRequest {
    let allowed = options.allowCredentials.map(\.id)
    guard let known = credentials.last(where: { $0.party == options.rpId && allowed.contains($0.id) }) else {
      throw .unknownKey
    }
    try await touch(reason: "Prove that it is you at \(options.rpId)")
    let data = clientData("webauthn.get", options.challenge, options.rpId)
    do {
      guard let credential = try countSignature(by: known.id) else { throw Self.unusable }
      let authenticatorData = try credential.authenticatorData(withPublicKey: false)
      let signature = try credential.privateKey.signature(for: authenticatorData + SHA256.hash(data))
      return AuthenticationRequest(
        id: credential.id, rawId: credential.id, type: "public-key",
        response: .init(
          clientDataJSON: Base64URL.encode(data), authenticatorData: Base64URL.encode(authenticatorData),
          signature: Base64URL.encode(signature)))
    } catch {
      throw Self.unusable
    }
  }

  private func touch(reason: String) async throws(SecurityKeyError) {
    switch await show(.securityKey, reason: reason) {
    case .approve: return
    case .decline, .fail, .usePasscode, .interrupt: throw .cancelled
    }
  }

  /// The client data (section 5.8.1), as an app with the domain of the relying party makes it.
  private func clientData(_ type: String, _ challenge: String, _ party: String) -> [UInt8] {
    let members = ["type": type, "challenge": challenge, "origin": "https://" + party]
    return Array(JSONText.encoding(members).utf8)
  }
}
