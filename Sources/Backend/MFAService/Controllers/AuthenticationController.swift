internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import MFAWire

/// The operations for signing in.
struct AuthenticationController {
  let authentication: Authentication
  let codes: SMSCodes

  var operations: [Operation] { [initiate, verifySignature, requestOTP, verifyOTP] }

  private var initiate: Operation {
    Operation(
      MFAOperations.initiateSignIn, "Starts a sign-in with a challenge for the device.", access: .attested,
      sendsMessages: true, refusals: [.invalidRequest, .boundElsewhere, .deviceNotEnrolled]
    ) { request, caller in
      let (method, challenge) = try await authentication.challenge(
        Username(request.username), DeviceID(request.deviceId), for: caller)
      return ChallengeResponse(
        method: method.rawValue, challenge: Base64.encode(challenge.nonce),
        challengeId: challenge.id.text, expiresIn: Int(DeviceChallenge.lifetime.components.seconds))
    }
  }

  private var verifySignature: Operation {
    Operation(
      MFAOperations.verifySignature, "Answers a challenge and starts a session.",
      access: .attested, refusals: [.invalidRequest, .authenticationFailed, .accountLocked]
    ) { request, caller in
      guard let challengeID = UUID(text: request.challengeId) else {
        throw InvalidValue(field: "challengeId", rule: "must be a UUID")
      }
      let response = Authentication.SignedChallenge(
        challengeID: challengeID, username: try Username(request.username),
        deviceID: try DeviceID(request.deviceId), signature: try BinaryField.signature(request.signature))
      let tokens = try await authentication.verify(
        response, trustToken: request.trustToken.checked("trustToken"), by: caller)
      return TokenResponse(tokens)
    }
  }

  private var requestOTP: Operation {
    Operation(
      MFAOperations.requestOTP, "Sends a code to the number that the device enrolled.",
      access: .attested, rateClass: .sensitive, sendsMessages: true, refusals: [.invalidRequest, .rateLimited]
    ) { request, caller in
      let named = try PhoneNumber(request.phoneNumber)
      try await codes.request(for: Username(request.username), by: caller)
      return RequestOTPResponse(
        message: "OTP sent to \(named.text)", expiresIn: Int(OneTimeCode.lifetime.components.seconds))
    }
  }

  private var verifyOTP: Operation {
    Operation(
      MFAOperations.verifyOTP, "Verifies an SMS code and starts a session.", access: .attested,
      rateClass: .sensitive, refusals: [.invalidRequest, .codeInvalid, .codeExpired, .rateLimited, .accountLocked]
    ) { request, caller in
      guard (1...CodeGuess.longest).contains(request.otp.utf8.count) else {
        throw InvalidValue(field: "otp", rule: "must have 1 to 32 characters")
      }
      let tokens = try await codes.verify(
        request.otp, for: Username(request.username), trustToken: request.trustToken.checked("trustToken"), by: caller)
      return TokenResponse(tokens)
    }
  }
}

extension TokenResponse {
  init(_ tokens: SessionTokens) {
    self.init(
      token: tokens.access, message: "Authentication successful", refreshToken: tokens.refresh,
      expiresIn: Int(tokens.lifetime.components.seconds), scope: tokens.scope.rawValue)
  }
}
