/// The client's response after an authenticator has made a credential.
public struct RegistrationResponse: Sendable, Hashable {
  public let credentialID: [UInt8]
  public let clientDataJSON: [UInt8]
  public let attestationObject: [UInt8]
  public let transports: [String]

  public init(
    credentialID: [UInt8], clientDataJSON: [UInt8], attestationObject: [UInt8], transports: [String] = []
  ) {
    self.credentialID = credentialID
    self.clientDataJSON = clientDataJSON
    self.attestationObject = attestationObject
    self.transports = transports
  }
}

/// The client's response after an authenticator has signed with a credential.
public struct AuthenticationResponse: Sendable, Hashable {
  public let credentialID: [UInt8]
  public let clientDataJSON: [UInt8]
  public let authenticatorData: [UInt8]
  public let signature: [UInt8]
  /// The user that the authenticator names; `nil` if it names none.
  public let userHandle: [UInt8]?

  public init(
    credentialID: [UInt8], clientDataJSON: [UInt8], authenticatorData: [UInt8], signature: [UInt8],
    userHandle: [UInt8]? = nil
  ) {
    self.credentialID = credentialID
    self.clientDataJSON = clientDataJSON
    self.authenticatorData = authenticatorData
    self.signature = signature
    self.userHandle = userHandle
  }
}

/// The credential of a verified registration.
public struct VerifiedCredential: Sendable, Hashable {
  public let id: CredentialID
  public let publicKey: CredentialPublicKey
  public let signatureCount: UInt32
  public let isBackupEligible: Bool
  public let isBackedUp: Bool
}

/// A verified use of a credential. The signature count is compared later, in the transaction.
public struct VerifiedUse: Sendable, Hashable {
  public let signatureCount: UInt32
  public let isBackedUp: Bool
}

extension RelyingParty {
  /// Verifies a registration (Web Authentication Level 3, section 7.1), in its order; the store ensures that the
  /// credential is not registered yet.
  public func verify(
    _ response: RegistrationResponse, challenge: [UInt8]
  ) throws(WebAuthnRejection) -> VerifiedCredential {
    let clientData = try CollectedClientData(json: response.clientDataJSON)
    try clientData.check(.registration, challenge, for: self)
    let attestation = try WebAuthnAttestationObject(response.attestationObject)
    let data = attestation.authenticatorData
    try data.check(for: self)
    // A parsed key always has a requested algorithm.
    guard let credential = data.credential else { throw .attestedCredential }
    try attestation.check(credential, clientDataHash: clientData.hash)
    guard credential.id.bytes == response.credentialID else { throw .credentialID }
    return VerifiedCredential(
      id: credential.id, publicKey: credential.publicKey, signatureCount: data.signatureCount,
      isBackupEligible: data.flags.contains(.backupEligible), isBackedUp: data.flags.contains(.backedUp))
  }

  /// Verifies a use of `key` (Web Authentication Level 3, section 7.2), in its order, up to the signature, and after it
  /// that the key's eligibility for backup has not changed.
  ///
  /// - Parameter userHandle: The user's identifier for authenticators.
  public func verify(
    _ response: AuthenticationResponse, by key: SecurityKey, userHandle: [UInt8], challenge: [UInt8]
  ) throws(WebAuthnRejection) -> VerifiedUse {
    guard response.credentialID == key.credentialID.bytes else { throw .credentialUnknown }
    if let handle = response.userHandle, handle != userHandle { throw .userHandle }
    let clientData = try CollectedClientData(json: response.clientDataJSON)
    try clientData.check(.authentication, challenge, for: self)
    let data = try WebAuthnAuthenticatorData(response.authenticatorData)
    try data.check(for: self)
    // No authenticator makes a credential here (section 6.3.3).
    guard data.credential == nil else { throw .attestedCredential }
    guard key.publicKey.verifies(response.signature, of: data.bytes + clientData.hash) else { throw .signature }
    // After the signature, so that only the holder of the key learns it: synchronizers have changed this flag.
    guard data.flags.contains(.backupEligible) == key.isBackupEligible else { throw .backupEligibility }
    return VerifiedUse(signatureCount: data.signatureCount, isBackedUp: data.flags.contains(.backedUp))
  }
}

extension SecurityKey {
  /// Records a verified use (section 7.2, at its end).
  ///
  /// - Throws: `.signatureCount` for a count that did not grow, unless the key has never counted.
  mutating func use(_ use: VerifiedUse) throws(WebAuthnRejection) {
    if use.signatureCount > 0 || signatureCount > 0 {
      guard use.signatureCount > signatureCount else { throw .signatureCount }
    }
    signatureCount = use.signatureCount
    isBackedUp = use.isBackedUp
  }
}
