internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import MFAWire

/// The operations for signing in with an identity provider.
struct FederationController {
  let federation: Federation

  var operations: [Operation] { [challenge, signIn, bind, identities, unbind] }

  private static let ofOwners: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .secondFactorRequired, .freshProofRequired, .boundElsewhere, .accountLocked,
  ]

  private var challenge: Operation {
    Operation(
      MFAOperations.identityChallenge,
      "Creates a challenge for an ID token. The token's nonce is the SHA-256 of its bytes, in base64url.",
      access: .attested, refusals: [.invalidRequest]
    ) { _, caller in
      let challenge = try await federation.challenge(for: caller)
      return IdentityChallengeResponse(
        challengeId: challenge.id.text, challenge: Base64.encode(challenge.bytes),
        expiresIn: Int(FederationChallenge.lifetime.components.seconds))
    }
  }

  private var signIn: Operation {
    Operation(
      MFAOperations.signInWithIdentity,
      "Verifies an ID token as first factor and starts a session, which lacks the second factor.",
      access: .attested, rateClass: .sensitive, refusals: [.invalidRequest, .authenticationFailed, .accountLocked]
    ) { request, caller in
      TokenResponse(
        try await federation.signIn(
          Federation.Answer(challengeID: request.challengeId, idToken: request.idToken), by: caller))
    }
  }

  private var bind: Operation {
    Operation(
      MFAOperations.bindIdentity, "Connects the account to the user of the identity provider.", access: .session,
      rateClass: .sensitive, refusals: Self.ofOwners + [.authenticationFailed, .identityConnected]
    ) { request, caller in
      try await federation.connect(
        Federation.Answer(challengeID: request.challengeId, idToken: request.idToken), by: caller)
      return MessageResponse(message: "Identity provider connected")
    }
  }

  private var identities: Operation {
    Operation(
      MFAOperations.identities, "The users of identity providers that the account is connected to.", access: .session,
      refusals: Self.ofOwners
    ) { _, caller in
      IdentityList(identities: try await federation.identities(for: caller).map(IdentityList.Entry.init))
    }
  }

  private var unbind: Operation {
    Operation(
      MFAOperations.unbindIdentity, "Ends the connection of the account to the identity provider.", access: .session,
      refusals: Self.ofOwners + [.notFound]
    ) { _, caller in
      try await federation.disconnect(by: caller)
      return MessageResponse(message: "Identity provider disconnected")
    }
  }
}

extension Federation.Answer {
  /// The longest ID token, in bytes.
  private static let longest = 49_152

  /// - Throws: `InvalidValue`
  init(challengeID text: String, idToken: String) throws(InvalidValue) {
    guard let id = UUID(text: text) else { throw InvalidValue(field: "challengeId", rule: "must be a UUID") }
    guard (1...Self.longest).contains(idToken.utf8.count) else {
      throw InvalidValue(field: "idToken", rule: "must have 1 to \(Self.longest) bytes")
    }
    self.init(challengeID: id, idToken: idToken)
  }
}

extension IdentityList.Entry {
  fileprivate init(_ identity: FederatedIdentity) {
    self.init(
      issuer: identity.subject.issuer, subject: identity.subject.subject, connectedAt: identity.createdAt.wire,
      lastUsedAt: identity.lastUsedAt?.wire)
  }
}
