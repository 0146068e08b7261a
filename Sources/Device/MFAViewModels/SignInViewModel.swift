internal import ByteCoding
internal import MFAClient
public import MFAWire

/// Signs in: by the signature of this device's key, or by a code that the server sends.
///
/// Events are handled one after another; a call returns when its event and the effects of it are finished. A prompt that
/// the user declines leaves the server's challenge unused.
public actor SignInViewModel {
  /// The state now.
  public private(set) var state = SignInState()
  /// The tokens of the session, after `.signedIn`.
  public private(set) var tokens: TokenResponse?

  private let services: DeviceServices
  private let app: AppDescription
  private var machine = SignInMachine()
  private let publisher = StatePublisher<SignInState>()

  /// Creates a view model for the account of `app`.
  public init(services: DeviceServices, app: AppDescription) {
    self.services = services
    self.app = app
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<SignInState> { publisher.states(beginningWith: state) }

  /// Call it when the user chooses an option of the state. An option that is not offered any more does nothing.
  public func choose(_ option: SignInState.Option) async { await handle(.chose(option)) }

  /// Call it when the user has entered the code. Spaces around and between its digits do not matter.
  public func enter(code: String) async { await handle(.enteredCode(code.filter { !$0.isWhitespace })) }

  private func handle(_ event: SignInMachine.Event) async {
    var next: SignInMachine.Event? = event
    while let event = next {
      let effect = machine.apply(event)
      if state != machine.state {
        state = machine.state
        publisher.publish(state)
      }
      next = nil
      if let effect { next = await perform(effect) }
    }
  }

  // MARK: Effects

  private func perform(_ effect: SignInMachine.Effect) async -> SignInMachine.Event? {
    do {
      switch effect {
      case .requestChallenge: return try await requestChallenge()
      case .requestCode:
        let number = try services.storage.load().phoneNumber ?? app.phoneNumber ?? ""
        _ = try await services.backend.call(
          MFAOperations.requestOTP, RequestOTPRequest(username: app.username, phoneNumber: number))
        return .codeSent
      case .sign(let challenge): return await sign(challenge)
      case .verifySignature(let challenge, let signature):
        let request = VerifySignatureRequest(
          username: app.username, deviceId: try services.storage.load().deviceID, challengeId: challenge.id,
          signature: Base64.encode(signature))
        return accept(try await services.backend.call(MFAOperations.verifySignature, request))
      case .verifyCode(let code):
        return accept(
          try await services.backend.call(MFAOperations.verifyOTP, VerifyOTPRequest(username: app.username, otp: code)))
      case .openSettings:
        app.openSettings()
        return nil
      }
    } catch {
      return .failed("\(error)")
    }
  }

  /// The server says how the device signs in. For codes by SMS it has sent one already.
  private func requestChallenge() async throws -> SignInMachine.Event {
    let request = DeviceRequest(username: app.username, deviceId: try services.storage.load().deviceID)
    let answer = try await services.backend.call(MFAOperations.initiateSignIn, request)
    if answer.method == MFAMethod.smsOTP.rawValue { return .codeSent }
    guard let bytes = Base64.decode(answer.challenge), bytes.count == 32 else {
      return .failed("The server's challenge is malformed")
    }
    return .challenged(SignInMachine.DeviceChallenge(id: answer.challengeId, bytes: bytes))
  }

  private func sign(_ challenge: SignInMachine.DeviceChallenge) async -> SignInMachine.Event {
    do throws(DeviceSecurityError) {
      guard let tag = (try? services.storage.load())?.keyTag(bundleID: app.bundleID) else { throw .keyMissing }
      let signature = try await services.keychain.sign(challenge.bytes, with: tag, reason: "Sign in as \(app.username)")
      return .signed(challenge, signature: signature)
    } catch {
      return .keyFailed(error, await services.biometrics.capability())
    }
  }

  private func accept(_ response: TokenResponse) -> SignInMachine.Event {
    tokens = response
    return .verified(needsSecondFactor: response.scope == "mfa")
  }
}
