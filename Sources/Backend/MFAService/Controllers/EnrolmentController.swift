internal import MFADomain
internal import MFAWire

/// The operations that enrol, change and remove devices.
struct EnrolmentController {
  let enrolment: Enrolment
  let linking: Linking

  var operations: [Operation] { [enroll, link, unenroll, upgrade, downgrade] }

  private var link: Operation {
    Operation(
      MFAOperations.linkDevice, "Creates a code that another device enrols with.", access: .session,
      rateClass: .sensitive,
      refusals: Self.ofOwners
    ) { _, caller in
      LinkResponse(
        linkCode: try await linking.code(for: caller), expiresIn: Int(OneTimeCode.lifetime.components.seconds))
    }
  }

  private var enroll: Operation {
    Operation(
      MFAOperations.enroll, "Enrols a device. A new username creates an account.", access: .attested,
      rateClass: .sensitive,
      refusals: [
        .invalidRequest, .sessionRequired, .freshProofRequired, .boundElsewhere, .forbidden, .deviceExists,
        .tooManyDevices, .tooManyAccounts, .accountLocked, .secondFactorRequired, .codeInvalid, .codeExpired,
        .rateLimited,
        .recoveryPending, .authenticationFailed, .identityConnected,
      ]
    ) { request, caller in
      let device = try await enrolment.enrol(try Enrolment.Application(request), by: caller)
      return EnrollResponse(
        deviceId: device.id.text, method: device.method.rawValue, message: "Device enrolled successfully")
    }
  }

  private var unenroll: Operation {
    Operation(
      MFAOperations.unenroll, "Removes a device with its challenges, sessions and trust.",
      access: .session, refusals: Self.ofOwners + [.deviceNotEnrolled]
    ) { request, caller in
      try await enrolment.unenrol(Username(request.username), DeviceID(request.deviceId), by: caller)
      return UnenrollResponse(message: "Device unenrolled")
    }
  }

  private var upgrade: Operation {
    Operation(
      MFAOperations.upgrade, "Gives a device a key, or replaces its key.",
      access: .session, refusals: Self.ofOwners + [.deviceNotEnrolled, .boundElsewhere]
    ) { request, caller in
      try await enrolment.upgrade(
        Username(request.username), DeviceID(request.deviceId), to: DevicePublicKey(base64: request.publicKey),
        authMethod: try request.authMethod.map(AuthMethod.init(wire:)), by: caller)
      return MethodResponse(method: MFAMethod.secureEnclave.rawValue, message: "Upgraded to Secure Enclave MFA")
    }
  }

  private var downgrade: Operation {
    Operation(
      MFAOperations.downgrade,
      "Removes the key of a device, which then signs in with SMS codes to its enrolled number.", access: .attested,
      refusals: Self.ofOwners + [.deviceNotEnrolled, .boundElsewhere, .noPhoneNumber]
    ) { request, caller in
      try await enrolment.downgrade(Username(request.username), DeviceID(request.deviceId), by: caller)
      return MethodResponse(method: MFAMethod.smsOTP.rawValue, message: "Downgraded to SMS OTP")
    }
  }

  private static let ofOwners: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .freshProofRequired, .forbidden, .accountLocked, .secondFactorRequired,
    .boundElsewhere,
  ]
}

extension Enrolment.Application {
  fileprivate init(_ request: EnrollRequest) throws(InvalidValue) {
    guard let method = MFAMethod(rawValue: request.method) else {
      throw InvalidValue(field: "method", rule: "must be secureEnclave or smsOTP")
    }
    try self.init(
      username: Username(request.username), deviceID: DeviceID(request.deviceId),
      model: DeviceModel(request.deviceModel ?? ""), method: method,
      authMethod: request.authMethod.map(AuthMethod.init(wire:)),
      publicKey: request.publicKey.present.map(DevicePublicKey.init(base64:)),
      phoneNumber: request.phoneNumber.present.map { text throws(InvalidValue) in try PhoneNumber(text) },
      linkCode: request.linkCode.present.map { text throws(InvalidValue) in try CodeGuess(text) },
      recoveryToken: request.recoveryToken.present.checked("recoveryToken"),
      identity: Federation.Answer(challengeID: request.challengeId.present, idToken: request.idToken.present))
  }
}

extension Federation.Answer {
  /// Returns `nil` without a token. A challenge alone is ignored, as other operations have a field of this name.
  fileprivate init?(challengeID: String?, idToken: String?) throws(InvalidValue) {
    guard let idToken else { return nil }
    guard let challengeID else { throw InvalidValue(field: "challengeId", rule: "is required with idToken") }
    try self.init(challengeID: challengeID, idToken: idToken)
  }
}

extension AuthMethod {
  fileprivate init(wire text: String) throws(InvalidValue) {
    guard let method = AuthMethod(rawValue: text) else {
      throw InvalidValue(field: "authMethod", rule: "must be biometric or passcode")
    }
    self = method
  }
}

extension String? {
  /// `nil` also for an empty text, which clients send for an absent value.
  fileprivate var present: String? { self == "" ? nil : self }
}
