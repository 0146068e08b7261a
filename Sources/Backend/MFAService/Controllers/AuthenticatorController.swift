internal import MFADomain
internal import MFAWire
internal import OneTimePasswords

/// The operations that set up and remove an authenticator and e-mail codes.
struct AuthenticatorController {
  let authenticator: Authenticator
  let codes: EmailCodes

  var operations: [Operation] { [enroll, verifyEnrollment, disable, regenerate, offerEmail, verifyEmail] }

  private static let ofBearers: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .secondFactorRequired, .boundElsewhere, .accountLocked,
  ]
  private static let ofGuesses: [RefusalCode] = ofBearers + [.codeInvalid, .codeExpired, .rateLimited, .notEnabled]

  private var enroll: Operation {
    Operation(
      MFAOperations.enrollAuthenticator, "Creates a secret for an authenticator, and backup codes.",
      access: .session, refusals: Self.ofBearers + [.freshProofRequired, .alreadyEnabled]
    ) { request, caller in
      let offer = try await authenticator.offer(
        try TOTPParameters(algorithm: request.algorithm, digits: request.digits), by: caller)
      return AuthenticatorOffer(secret: offer.secret, qrCodeURL: offer.uri, backupCodes: offer.backupCodes)
    }
  }

  private var verifyEnrollment: Operation {
    Operation(
      MFAOperations.confirmAuthenticator, "Confirms the new authenticator with a code.",
      access: .session, rateClass: .sensitive, refusals: Self.ofGuesses + [.alreadyEnabled]
    ) { request, caller in
      try await authenticator.confirm(request.code, by: caller)
      return MessageResponse(message: "MFA enabled successfully")
    }
  }

  private var disable: Operation {
    Operation(
      MFAOperations.disableAuthenticator, "Removes the authenticator and all trust, with a code.",
      access: .session, rateClass: .sensitive, refusals: Self.ofGuesses
    ) { request, caller in
      try await authenticator.disable(request.code, by: caller)
      return MessageResponse(message: "MFA disabled successfully")
    }
  }

  private var regenerate: Operation {
    Operation(
      MFAOperations.regenerateBackupCodes,
      "Replaces the backup codes, with a code.", access: .session, rateClass: .sensitive, refusals: Self.ofGuesses
    ) { request, caller in
      BackupCodes(backupCodes: try await authenticator.regenerateBackupCodes(request.code, by: caller))
    }
  }

  private var offerEmail: Operation {
    Operation(
      MFAOperations.offerEmail, "Sends a code to a new address for e-mail codes.",
      access: .session, rateClass: .sensitive, sendsMessages: true,
      refusals: Self.ofBearers + [.freshProofRequired, .rateLimited]
    ) { request, caller in
      try await codes.offer(try EmailAddress(request.email), by: caller)
      return MessageResponse(message: "Verification code sent")
    }
  }

  private var verifyEmail: Operation {
    Operation(
      MFAOperations.confirmEmail, "Confirms the new address with its code.",
      access: .session, rateClass: .sensitive, refusals: Self.ofGuesses
    ) { request, caller in
      try await codes.confirm(try EmailAddress(request.email), request.code, by: caller)
      return MessageResponse(message: "E-mail address verified")
    }
  }
}

extension TOTPParameters {
  /// The parameters that a request asks for; `nil` for the default.
  init(algorithm name: String?, digits: Int?) throws(InvalidValue) {
    guard let algorithm = Algorithm(rawValue: name ?? "SHA1") else {
      throw InvalidValue(field: "algorithm", rule: "must be SHA1, SHA256 or SHA512")
    }
    guard let parameters = TOTPParameters(checkedAlgorithm: algorithm, digits: digits ?? 6, period: 30) else {
      throw InvalidValue(field: "digits", rule: "must be 6, 7 or 8")
    }
    self = parameters
  }
}
