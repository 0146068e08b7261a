internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import MFAWire

/// The operations for security keys as second factor. The JSON is that of Web Authentication Level 3, so values of
/// browsers pass through unchanged.
struct SecurityKeyController {
  let keys: SecurityKeys
  let proof: SecurityKeyProof

  var operations: [Operation] {
    [registrationOptions, register, list, rename, remove, authenticationOptions, verifyLogin]
  }

  private static let ofBearers: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .secondFactorRequired, .boundElsewhere, .accountLocked,
  ]

  private var registrationOptions: Operation {
    Operation(
      MFAOperations.registrationOptions,
      "The options for creating a credential: PublicKeyCredentialCreationOptionsJSON.", access: .session,
      refusals: Self.ofBearers + [.freshProofRequired, .tooManySecurityKeys]
    ) { _, caller in
      CredentialCreationOptions(try await keys.offer(by: caller))
    }
  }

  private var register: Operation {
    Operation(
      MFAOperations.registerSecurityKey,
      "Registers a security key: RegistrationResponseJSON and a name.", access: .session, rateClass: .sensitive,
      refusals: Self.ofBearers + [.freshProofRequired, .tooManySecurityKeys, .securityKeyExists]
    ) { request, caller in
      SecurityKeyEntry(
        try await keys.register(
          RegistrationResponse(request), name: DeviceModel(request.name ?? "", field: "name"), by: caller))
    }
  }

  private var list: Operation {
    Operation(
      MFAOperations.securityKeys, "The caller's security keys, oldest first.", access: .session,
      refusals: Self.ofBearers
    ) { _, caller in
      SecurityKeyList(keys: try await keys.list(for: caller).map(SecurityKeyEntry.init))
    }
  }

  private var rename: Operation {
    Operation(
      MFAOperations.renameSecurityKey, "Renames a security key.", access: .session,
      refusals: Self.ofBearers + [.notFound]
    ) { request, caller in
      SecurityKeyEntry(
        try await keys.rename(
          UUID(keyID: request.id), to: DeviceModel(request.name, field: "name"), by: caller))
    }
  }

  private var remove: Operation {
    Operation(
      MFAOperations.removeSecurityKey, "Removes a security key.", access: .session,
      refusals: Self.ofBearers + [.freshProofRequired, .notFound]
    ) { request, caller in
      try await keys.remove(UUID(keyID: request.id), by: caller)
      return MessageResponse(message: "Security key removed")
    }
  }

  private var authenticationOptions: Operation {
    Operation(
      MFAOperations.authenticationOptions,
      "The options for signing with a security key: PublicKeyCredentialRequestOptionsJSON.", access: .pendingSession,
      refusals: Self.ofBearers + [.notEnabled]
    ) { _, caller in
      CredentialRequestOptions(try await proof.request(by: caller))
    }
  }

  private var verifyLogin: Operation {
    Operation(
      MFAOperations.verifyLoginWithSecurityKey,
      "Verifies a security key as second factor: AuthenticationResponseJSON.", access: .pendingSession,
      rateClass: .sensitive,
      refusals: Self.ofBearers + [.authenticationFailed, .rateLimited, .notEnabled]
    ) { request, caller in
      let name = try DeviceModel(request.device_name ?? "", field: "device_name").text
      let description = SecondFactor.Description(name: name, userAgent: caller.userAgent)
      let (tokens, trustToken) = try await proof.verify(
        AuthenticationResponse(request), trusting: request.trust_device == true ? description : nil, by: caller)
      return VerifyMFAResponse(tokens, trustToken: trustToken)
    }
  }
}

extension CredentialCreationOptions {
  fileprivate init(_ offer: SecurityKeys.Offer) {
    self.init(
      rp: RelyingParty(id: offer.party.id, name: offer.partyName),
      user: User(
        id: Base64URL.encode(offer.userHandle), name: offer.username, displayName: offer.username),
      challenge: Base64URL.encode(offer.challenge),
      pubKeyCredParams: CredentialPublicKey.Algorithm.allCases.map { Parameter(alg: $0.rawValue) },
      timeout: Int(KeyChallenge.lifetime.components.seconds) * 1000,
      excludeCredentials: offer.known.map(CredentialDescriptor.init),
      // A second factor needs no discoverable credential, and storage on hardware keys is scarce.
      authenticatorSelection: Selection(
        residentKey: "discouraged", userVerification: offer.party.userVerification.rawValue),
      attestation: "none")
  }
}

extension CredentialRequestOptions {
  fileprivate init(_ request: SecurityKeyProof.Request) {
    self.init(
      challenge: Base64URL.encode(request.challenge), timeout: Int(KeyChallenge.lifetime.components.seconds) * 1000,
      rpId: request.party.id, allowCredentials: request.keys.map(CredentialDescriptor.init),
      userVerification: request.party.userVerification.rawValue)
  }
}

extension CredentialDescriptor {
  fileprivate init(_ key: SecurityKey) {
    self.init(
      id: Base64URL.encode(key.credentialID.bytes), transports: key.transports.isEmpty ? nil : key.transports)
  }
}

extension SecurityKeyEntry {
  fileprivate init(_ key: SecurityKey) {
    self.init(
      id: key.id.text, credentialId: Base64URL.encode(key.credentialID.bytes), name: key.name.text,
      algorithm: key.publicKey.algorithm.rawValue, transports: key.transports, backedUp: key.isBackedUp,
      createdAt: key.createdAt.wire, lastUsedAt: key.lastUsedAt?.wire)
  }
}

extension RegistrationResponse {
  fileprivate init(_ request: RegistrationRequest) throws(InvalidValue) {
    self.init(
      credentialID: try CredentialText.id(request.id, rawID: request.rawId, type: request.type),
      clientDataJSON: try BinaryField.credential(
        request.response.clientDataJSON, "response.clientDataJSON", atMost: 8192),
      attestationObject: try BinaryField.credential(
        request.response.attestationObject, "response.attestationObject", atMost: 16384),
      transports: CredentialText.transports(request.response.transports ?? []))
  }
}

extension AuthenticationResponse {
  fileprivate init(_ request: AuthenticationRequest) throws(InvalidValue) {
    let response = request.response
    // Some clients send an empty handle for a key that stores none.
    let handle = response.userHandle == "" ? nil : response.userHandle
    self.init(
      credentialID: try CredentialText.id(request.id, rawID: request.rawId, type: request.type),
      clientDataJSON: try BinaryField.credential(response.clientDataJSON, "response.clientDataJSON", atMost: 8192),
      authenticatorData: try BinaryField.credential(
        response.authenticatorData, "response.authenticatorData", atMost: 4096),
      signature: try BinaryField.credential(response.signature, "response.signature", atMost: 1024),
      userHandle: try handle.map { text throws(InvalidValue) in
        try BinaryField.credential(text, "response.userHandle", atMost: 64)
      })
  }
}

/// The identifier and the transports in a credential's JSON.
private enum CredentialText {
  static func id(_ id: String, rawID: String, type: String) throws(InvalidValue) -> [UInt8] {
    guard type == "public-key" else { throw InvalidValue(field: "type", rule: "must be public-key") }
    let bytes = try BinaryField.credential(id, "id", atMost: CredentialID.longest)
    guard try BinaryField.credential(rawID, "rawId", atMost: CredentialID.longest) == bytes else {
      throw InvalidValue(field: "rawId", rule: "must be the same as id")
    }
    return bytes
  }

  /// The well-formed transport names, sorted, at most 8. Unknown names are kept for the future; the limits protect
  /// the database from arbitrary input.
  static func transports(_ texts: [String]) -> [String] {
    let plain = Set(texts.prefix(32)).filter { text in
      (1...32).contains(text.utf8.count) && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x2D }
    }
    return Array(plain.sorted().prefix(8))
  }
}

extension UUID {
  fileprivate init(keyID text: String) throws(InvalidValue) {
    guard let id = UUID(text: text) else { throw InvalidValue(field: "id", rule: "must be a UUID") }
    self = id
  }
}
