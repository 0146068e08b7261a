internal import Foundation
internal import MFADomain
internal import MFAWire

/// The operations for the second factor of a sign-in, and for trusted devices.
struct SecondFactorController {
  let secondFactor: SecondFactor
  let codes: EmailCodes
  let trust: Trust

  var operations: [Operation] { [status, verifyLogin, resendEmail, trustedDevices, revokeTrust] }

  private static let ofBearers: [RefusalCode] = [.sessionRequired, .boundElsewhere, .accountLocked]

  private var status: Operation {
    Operation(
      MFAOperations.status, "The state of the caller's second factor.", access: .pendingSession,
      refusals: Self.ofBearers
    ) { _, caller in
      MFAStatus(try await trust.status(for: caller))
    }
  }

  private var verifyLogin: Operation {
    Operation(
      MFAOperations.verifyLogin, "Verifies the second factor.", access: .pendingSession,
      rateClass: .sensitive,
      refusals: Self.ofBearers + [.invalidRequest, .codeInvalid, .codeExpired, .rateLimited, .notEnabled]
    ) { request, caller in
      let method = try request.method.map { text throws(InvalidValue) in
        guard let method = SecondFactorMethod(rawValue: text), method != .securityKey else {
          throw InvalidValue(field: "method", rule: "must be totp, email or backup_code")
        }
        return method
      }
      let name = try DeviceModel(request.device_name ?? "", field: "device_name").text
      let description = SecondFactor.Description(name: name, userAgent: caller.userAgent)
      let (tokens, trustToken) = try await secondFactor.verify(
        request.code, method: method, trusting: request.trust_device == true ? description : nil, by: caller)
      return VerifyMFAResponse(tokens, trustToken: trustToken)
    }
  }

  private var resendEmail: Operation {
    Operation(
      MFAOperations.resendEmailOTP, "Sends a code to the user's e-mail address.",
      access: .pendingSession, rateClass: .sensitive, sendsMessages: true,
      refusals: Self.ofBearers + [.rateLimited, .noEmailAddress]
    ) { _, caller in
      try await codes.send(by: caller)
      return MessageResponse(message: "Verification code sent")
    }
  }

  private var trustedDevices: Operation {
    Operation(
      MFAOperations.trustedDevices, "The caller's trusted devices.", access: .session,
      refusals: Self.ofBearers + [.secondFactorRequired]
    ) { _, caller in
      TrustedDeviceList(devices: try await trust.devices(for: caller).map(TrustedDeviceList.Entry.init))
    }
  }

  private var revokeTrust: Operation {
    Operation(
      MFAOperations.revokeTrustedDevice, "Revokes the trust in a device.",
      access: .session,
      refusals: Self.ofBearers + [.invalidRequest, .secondFactorRequired, .freshProofRequired, .notFound]
    ) { request, caller in
      try await trust.revoke(request.id, by: caller)
      return MessageResponse(message: "Trusted device revoked successfully")
    }
  }
}

extension VerifyMFAResponse {
  init(_ tokens: SessionTokens, trustToken: String?) {
    self.init(
      message: "MFA verification successful", userID: tokens.userID.text, token: tokens.access,
      refreshToken: tokens.refresh, expiresIn: Int(tokens.lifetime.components.seconds), trustToken: trustToken)
  }
}

extension MFAStatus {
  fileprivate init(_ status: Trust.Status) {
    self.init(
      enabled: status.enabledAt != nil, enrolledAt: status.enabledAt?.wire,
      backupCodesRemaining: status.backupCodesRemaining, trustedDevicesCount: status.trustedDevices,
      securityKeysCount: status.securityKeys,
      required: status.requirement != nil, requiredAt: status.requirement?.since.wire,
      gracePeriodEnd: status.requirement?.graceEnds.wire, inGracePeriod: status.requirement?.isInGrace ?? false,
      challengeRequired: status.isChallengeRequired, deviceTrusted: status.isDeviceTrusted,
      methods: status.methods.map(\.rawValue), policy: Policy(biometricGate: status.allowsBiometricGate))
  }
}

extension TrustedDeviceList.Entry {
  fileprivate init(_ device: TrustedDevice) {
    self.init(
      id: device.id, deviceName: device.name, fingerprint: device.fingerprint, createdAt: device.createdAt.wire,
      lastUsedAt: device.lastUsedAt.wire, expiresAt: device.expiresAt.wire, ipAddress: device.address)
  }
}
