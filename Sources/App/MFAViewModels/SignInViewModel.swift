internal import ByteCoding
internal import MFAClient
public import MFAWire

/// Signs in: by the signature of this device's key, or by a code that the server sends.
///
/// Events are handled one after another; a call returns when its event and the effects of it are finished. A prompt that
/// the user declines leaves the server's challenge unused.
public actor SignInViewModel: MachineDriven {
  /// The state now.
  public var state: SignInState { machine.state }
  /// The tokens of the session, after `.signedIn`.
  public private(set) var tokens: TokenResponse?

  private let services: DeviceServices
  var machine: SignInMachine
  /// The keys that the server has refused since the user began to sign in.
  private var refusedKeys: Set<KeyTag> = []
  nonisolated let publisher = StatePublisher<SignInState>()

  /// Creates a view model for the app of `services`.
  public init(services: DeviceServices) {
    self.services = services
    machine = SignInMachine(username: (try? services.storage.load().username) ?? services.app.username)
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<SignInState> { publisher.states(beginningWith: state) }

  /// Call it when the user enters the name of the account.
  public func enter(username: String) async { await handle(.enteredUsername(username)) }

  /// Call it when the user wants to sign in again: instead of entering a code, after a sign-in, and when the screen
  /// appears again after the user has enrolled the device or was in the Settings app.
  public func startOver() async { await handle(.startedOver) }

  /// Call it when the user chooses an option of the state. An option that is not offered any more does nothing.
  public func choose(_ option: SignInState.Option) async {
    refusedKeys = []
    await handle(.chose(option))
  }

  /// Call it when the user has entered the code. Spaces and dashes around and between its digits do not matter, and
  /// full-width digits are read as the usual ones.
  public func enter(code: String) async { await handle(.enteredCode(TypedCode.plain(code))) }

  // MARK: Effects

  func perform(_ effect: SignInMachine.Effect) async -> SignInMachine.Event? {
    do {
      switch effect {
      case .requestChallenge: return try await requestChallenge()
      case .requestCode:
        let number = try services.storage.load().phoneNumber ?? services.app.phoneNumber ?? ""
        _ = try await services.backend.call(
          MFAOperations.requestOTP, RequestOTPRequest(username: state.username, phoneNumber: number))
        return .codeSent
      case .sign(let challenge): return await sign(challenge)
      case .verifySignature(let challenge, let signature): return try await verify(signature, of: challenge)
      case .verifyCode(let code):
        let request = VerifyOTPRequest(username: state.username, otp: code, trustToken: trustToken)
        return await accept(try await services.backend.call(MFAOperations.verifyOTP, request))
      case .forgetEnrolment: return await forgetOtherInstance()
      case .openSettings:
        services.app.openSettings()
        return nil
      }
    } catch {
      return .failed("\(error)")
    }
  }

  /// The server says how the device signs in. For codes by SMS it has sent one already.
  private func requestChallenge() async throws -> SignInMachine.Event {
    let record = try services.storage.load()
    // The server ends the device's sessions together with the key, so this comes before the session that begins here.
    if record.pendingChange == .removeKey { _ = try? await services.enrolment.recover() }
    let request = DeviceRequest(username: state.username, deviceId: record.deviceID)
    let answer: ChallengeResponse
    do throws(NetworkError) {
      answer = try await services.backend.call(MFAOperations.initiateSignIn, request)
    } catch {
      // On a phone that was restored from a backup, for example. It must be enrolled again: mfa-backend sends codes only
      // to the numbers of devices that are bound to the calling app instance.
      if error.refusalCode == "device_mismatch" { return .boundElsewhere("\(error)") }
      guard error.refusalCode == "device_not_enrolled", try await forgetEnrolment() else { throw error }
      return .notEnrolled
    }
    if answer.method == MFAMethod.smsOTP.rawValue { return .codeSent }
    guard let bytes = Base64.decode(answer.challenge), bytes.count == 32 else {
      return .failed("The server's challenge is malformed")
    }
    return .challenged(SignInMachine.DeviceChallenge(id: answer.challengeId, bytes: bytes))
  }

  /// Forgets the enrolment that the server has removed, so that the device can enrol again.
  ///
  /// - Returns: Whether no enrolment is left. A change whose answer was lost may have brought another one.
  private func forgetEnrolment() async throws -> Bool {
    let record = try services.storage.load()
    if record.pendingChange != nil {
      _ = try await services.enrolment.recover()
    } else if record.isEnrolled {
      try await services.enrolment.forget()
    }
    let left = try services.storage.load()
    return !left.isEnrolled && left.pendingChange == nil
  }

  /// Forgets the enrolment that the server has for another app instance. No change of the device with its present id can
  /// succeed any more.
  private func forgetOtherInstance() async -> SignInMachine.Event? {
    do throws(EnrolmentError) {
      try await services.enrolment.forget(takingNewID: true)
      return nil
    } catch {
      return .notForgotten("\(error)")
    }
  }

  /// The key to sign with. If the answer to a change of the key was lost, the server may know either key.
  private func signingKey() throws -> KeyTag? {
    let record = try services.storage.load()
    var tags = [record.key?.tag]
    if case .replaceKey(let key) = record.pendingChange { tags.append(key.tag) }
    return tags.compactMap(\.self).first { !refusedKeys.contains($0) }
  }

  private func sign(_ challenge: SignInMachine.DeviceChallenge) async -> SignInMachine.Event {
    if let record = try? services.storage.load(), !record.isEnrolled, record.pendingChange == nil {
      return .notEnrolled
    }
    do throws(DeviceSecurityError) {
      guard let tag = try? signingKey() else { throw .keyMissing }
      let signature = try await services.keychain.sign(
        challenge.bytes, with: tag, reason: "Sign in as \(state.username)")
      return .signed(challenge, signature: signature)
    } catch {
      return .keyFailed(error, await services.biometrics.capability())
    }
  }

  private func verify(
    _ signature: [UInt8], of challenge: SignInMachine.DeviceChallenge
  ) async throws -> SignInMachine.Event {
    let request = VerifySignatureRequest(
      username: state.username, deviceId: try services.storage.load().deviceID, challengeId: challenge.id,
      signature: Base64.encode(signature), trustToken: trustToken)
    let answer: TokenResponse
    do throws(NetworkError) {
      answer = try await services.backend.call(MFAOperations.verifySignature, request)
    } catch {
      guard error.refusalCode == "authentication_failed", let tag = try signingKey() else { throw error }
      refusedKeys.insert(tag)
      if try signingKey() != nil { return .keyRefused }
      throw error
    }
    // If the record cannot be saved, the next sign-in finds out again.
    if !refusedKeys.isEmpty { try? await services.enrolment.adoptPendingKey() }
    return await accept(answer)
  }

  /// What replaces the second factor of this account; `nil` if this device is not remembered for it.
  private var trustToken: String? {
    let trust = services.trust.load()
    return trust?.username == state.username ? trust?.token : nil
  }

  /// Begins the session, and finishes a change that had to wait for one.
  private func accept(_ response: TokenResponse) async -> SignInMachine.Event {
    tokens = response
    // A session that cannot be saved lasts until the process exits.
    try? await services.session.begin(MFASession(response, of: state.username))
    _ = try? await services.enrolment.recover()
    return .verified(needsSecondFactor: response.scope == "mfa")
  }
}
