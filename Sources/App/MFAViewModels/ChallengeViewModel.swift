public import ByteCoding
internal import MFAClient
public import MFAWire

/// Gives the second factor: by a code of an authenticator, a code by e-mail, a backup code or a security key.
///
/// The server alone decides whether a code is right. A prompt for biometry is a convenience of the app: its result is
/// part of no request. Calls from several tasks are safe: while a step runs, events that do not fit it change nothing.
/// A user who signs out, or signs in again, ends the challenge: an answer that arrives later begins no session, and the
/// server is asked to revoke its tokens. A renewal of the session does not end it.
///
/// The view model has no clock. Call `tick` about once a second while the screen is shown; the waits are counted from
/// the last tick.
public actor ChallengeViewModel: MachineDriven {
  /// The state now.
  public var state: ChallengeState { machine.state }
  /// The tokens of the full session, after `.verified`. They replace those of the session before.
  public private(set) var tokens: TokenResponse?

  private let services: DeviceServices
  /// The access token that names the session, also after renewals have replaced it.
  private let token: String
  var machine: ChallengeMachine
  nonisolated let publisher = StatePublisher<ChallengeState>()

  /// Creates a view model for the app of `services`.
  ///
  /// - Parameter token: The access token of the session of `services`, which still needs the second factor and has the
  ///   scope `mfa`.
  public init(services: DeviceServices, token: String) {
    self.services = services
    self.token = token
    machine = ChallengeMachine(supportsSecurityKeys: services.securityKeys != nil)
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<ChallengeState> { publisher.states(beginningWith: state) }

  /// Call it when the screen appears, when the app returns to the front, and when the user tries again after
  /// `.unavailable`.
  ///
  /// Asks the server for the status, unless the last answer is at most 30 seconds old.
  public func appear(at time: Timestamp) async {
    await tick(time)
    await handle(.appeared)
  }

  /// Reports the time of the device's clock, for the countdowns of the state.
  public func tick(_ time: Timestamp) async { await handle(.ticked(time)) }

  /// Call it when a notice of the server says that the account has changed. Asks for the status again.
  public func invalidateStatus() async { await handle(.invalidatedStatus) }

  /// Call it when the user chooses a tab. A tab that the state does not have does nothing.
  public func select(_ tab: ChallengeState.Tab) async { await handle(.selected(tab)) }

  /// Call it when the text of the entry on the tab in front changes. Spaces and hyphens do not matter.
  public func enter(_ text: String) async { await handle(.entered(text)) }

  /// Call it when the user opens a link of an e-mail. Fills the entry for codes by e-mail, and sends nothing.
  public func open(_ link: ChallengeLink) async { await handle(.opened(link)) }

  /// Call it when the user changes the toggle "Remember this device".
  public func setRemembersDevice(_ isOn: Bool) async { await handle(.toggledTrust(isOn)) }

  /// Call it when the user taps the button for biometry. Returns when the prompt is answered.
  public func useBiometry() async { await handle(.choseBiometry) }

  /// Call it when the user asks for a code by e-mail. Does nothing before the pause of 60 seconds is over.
  public func sendEmail() async { await handle(.requestedEmail) }

  /// Call it when the user sends the code of the tab in front. Does nothing unless `canSubmit`.
  public func verify() async { await handle(.submitted) }

  /// Call it when the user taps "Use Security Key". Returns when a key was touched and the server has answered, or when the
  /// user gave up. Does nothing unless `canUseSecurityKey`.
  public func useSecurityKey() async { await handle(.choseSecurityKey) }

  // MARK: Effects

  func perform(_ effect: ChallengeMachine.Effect) async -> ChallengeMachine.Event? {
    switch effect {
    case .readCapability: return await readCapability()
    case .readStatus:
      _ = apply(await readCapability())
      return await readStatus()
    case .evaluateBiometry: return await evaluateBiometry()
    case .sendEmail: return await sendEmailCode()
    case .verify(let code, let method, let trustsDevice):
      return await verify(
        VerifyMFARequest(
          code: code, trustDevice: trustsDevice ? true : nil, method: method,
          deviceName: trustsDevice ? services.app.deviceModel : nil))
    case .proveSecurityKey(let trustsDevice): return await proveSecurityKey(trustsDevice)
    }
  }

  private func readCapability() async -> ChallengeMachine.Event {
    .readCapability(await services.biometrics.capability(), await services.biometrics.biometryType())
  }

  /// Asks the server, and drops a trust token that it does not know any more. A server that asks for the second factor
  /// because of a higher risk still knows it.
  private func readStatus() async -> ChallengeMachine.Event {
    let present = await services.session.login(of: token)
    let trust = services.trust.load()
    do throws(NetworkError) {
      let status = try await services.backend.call(
        MFAOperations.status, EmptyRequest(), token: present?.accessToken ?? token)
      // A token that was saved during the request is newer than the answer.
      if !status.device_trusted, let trust, trust.username == present?.login.username, services.trust.load() == trust {
        try? services.trust.save(nil)
      }
      return .readStatus(
        ChallengeMachine.Status(
          needsCode: status.challenge_required, isDeviceTrusted: status.device_trusted, methods: status.methods,
          allowsBiometry: status.policy.biometric_gate))
    } catch {
      return .statusFailed(ChallengeFailure(error))
    }
  }

  private func evaluateBiometry() async -> ChallengeMachine.Event {
    do throws(DeviceSecurityError) {
      try await services.biometrics.evaluate(.biometrics, reason: "Continue as \(services.app.username)")
      return .confirmedBiometry
    } catch {
      return .biometryFailed(error, await services.biometrics.capability())
    }
  }

  private func sendEmailCode() async -> ChallengeMachine.Event {
    let present = await services.session.login(of: token)
    do throws(NetworkError) {
      _ = try await services.backend.call(
        MFAOperations.resendEmailOTP, EmptyRequest(), token: present?.accessToken ?? token)
      return .emailSent
    } catch {
      return .failed(ChallengeFailure(error))
    }
  }

  private func verify(_ request: VerifyMFARequest) async -> ChallengeMachine.Event {
    guard let present = await services.session.login(of: token) else { return .failed(.signedOut) }
    do throws(NetworkError) {
      let answer = try await services.backend.call(MFAOperations.verifyLogin, request, token: present.accessToken)
      return await accept(answer, of: present.login, asksForTrust: request.trust_device == true)
    } catch {
      return .failed(ChallengeFailure(error))
    }
  }

  private func proveSecurityKey(_ trustsDevice: Bool) async -> ChallengeMachine.Event {
    guard let keys = services.securityKeys else { return .securityKeyFailed(.unknownKey) }
    guard let asking = await services.session.login(of: token) else { return .failed(.signedOut) }
    do throws(NetworkError) {
      let options = try await services.backend.call(
        MFAOperations.authenticationOptions, EmptyRequest(), token: asking.accessToken)
      var proof: AuthenticationRequest
      do throws(SecurityKeyError) { proof = try await keys.prove(options) } catch { return .securityKeyFailed(error) }
      if trustsDevice { (proof.trust_device, proof.device_name) = (true, services.app.deviceModel) }
      // The session may have been renewed while the user looked for the key.
      guard let present = await services.session.login(of: token) else { return .failed(.signedOut) }
      let answer = try await services.backend.call(
        MFAOperations.verifyLoginWithSecurityKey, proof, token: present.accessToken)
      return await accept(answer, of: present.login, asksForTrust: trustsDevice)
    } catch {
      return .failed(ChallengeFailure(error))
    }
  }

  /// Keeps the full session, and the trust if the user asked for it. If `login` is over, revokes the new tokens.
  private func accept(
    _ answer: VerifyMFAResponse, of login: SessionService.Login, asksForTrust: Bool
  ) async -> ChallengeMachine.Event {
    let response = TokenResponse(
      token: answer.token, message: answer.message, refreshToken: answer.refresh_token,
      expiresIn: answer.expires_in, scope: "full")
    guard let session = await services.session.complete(login, with: response) else {
      _ = try? await services.backend.call(MFAOperations.revokeToken, RevokeRequest(), token: answer.token)
      return .failed(.signedOut)
    }
    tokens = TokenResponse(
      token: session.accessToken, message: answer.message, refreshToken: session.refreshToken,
      expiresIn: answer.expires_in, scope: session.scope)
    if asksForTrust, let token = answer.trust_token {
      // If it cannot be kept, the next sign-in asks for a code.
      try? services.trust.save(DeviceTrust(username: session.username, token: token))
    }
    return .verified
  }
}
