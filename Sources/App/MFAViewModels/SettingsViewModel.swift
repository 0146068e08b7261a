internal import MFAClient
internal import MFAWire

/// Shows how this device signs in, changes it, and removes the device.
///
/// When the screen appears on a device that has lost its passcode, the server is told that the key has gone, so that
/// codes by SMS sign in. A changed key is tested before the server hears of it, and the old one is deleted afterwards.
/// Most changes need a session in which the user has signed in a short time ago: see `SettingsState.needsSignIn`.
public actor SettingsViewModel: MachineDriven {
  /// The state now.
  public var state: SettingsState { machine.state }

  private let services: DeviceServices
  var machine = SettingsMachine()
  nonisolated let publisher = StatePublisher<SettingsState>()

  /// Creates a view model for the app of `services`.
  public init(services: DeviceServices) { self.services = services }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<SettingsState> { publisher.states(beginningWith: state) }

  /// The version of the app and the model of the device, for the foot of the screen.
  public nonisolated var appText: String { "Version \(services.app.version) on \(services.app.deviceModel)" }

  /// Call it when the screen appears, when the app returns to the front, and after a sign-in: a change that was
  /// interrupted is finished.
  public func appear() async { await handle(.appeared) }

  /// Call it when the user chooses an option of the state. An option that is not offered any more does nothing.
  public func choose(_ option: SettingsState.Option) async { await handle(.chose(option)) }

  /// Call it when the user enters another number for codes, in E.164. A code is sent to it: see
  /// `SettingsState.awaitsNumberCode`.
  public func change(phoneNumber: String) async { await handle(.enteredPhone(phoneNumber)) }

  /// Call it when the user enters the code that was sent to the changed number.
  public func confirm(numberCode: String) async { await handle(.enteredNumberCode(numberCode)) }

  /// Call it when the user wants another code at the changed number. The server sends at most one a minute.
  public func resendNumberCode() async { await handle(.choseNumberCode) }

  // MARK: Effects

  func perform(_ effect: SettingsMachine.Effect) async -> SettingsMachine.Event? {
    let enrolment = services.enrolment
    switch effect {
    case .readDevice: return await readDevice()
    case .makeKey(let protection): return await makeKey(protection)
    case .abandonKey:
      await enrolment.discardNewKey()
      return await readDevice()
    case .replaceKey(let pair):
      return await report { () async throws(EnrolmentError) in try await enrolment.replaceKey(with: pair) }
    case .removeKey: return await report { () async throws(EnrolmentError) in try await enrolment.removeKey() }
    case .changePhoneNumber(let number):
      return await report { () async throws(EnrolmentError) in try await enrolment.change(phoneNumber: number) }
    case .sendNumberCode: return await sendNumberCode()
    case .verifyNumberCode(let code): return await verify(numberCode: code)
    case .unenroll: return await report { () async throws(EnrolmentError) in try await enrolment.unenroll() }
    case .openSettings:
      services.app.openSettings()
      return nil
    }
  }

  private func readDevice() async -> SettingsMachine.Event {
    let capability = await services.biometrics.capability()
    let biometryType = await services.biometrics.biometryType()
    do throws(EnrolmentError) {
      var status = try await services.enrolment.recover()
      let (registration, failure) = await readRegistration(status.record.deviceID)
      // Another device of the user, or an operator, has removed this one.
      if registration?.isEnrolled == false, status.record.isEnrolled, status.record.pendingChange == nil {
        try await services.enrolment.forget()
        status = try await services.enrolment.recover()
      }
      return .readDevice(
        SettingsMachine.Device(
          capability: capability, biometryType: biometryType, status: status, registration: registration,
          secondFactor: await readSecondFactor(), failure: (status.failure ?? failure).map { "\($0)" }))
    } catch {
      return .unreadable("\(error)")
    }
  }

  private func sendNumberCode() async -> SettingsMachine.Event {
    guard let record = try? services.storage.load(), let username = record.username, let number = record.phoneNumber
    else { return .failed(.noNumber) }
    do throws(NetworkError) {
      _ = try await services.backend.call(
        MFAOperations.requestOTP, RequestOTPRequest(username: username, phoneNumber: number))
      return .sentNumberCode
    } catch {
      return .failed(SettingsMachine.Failure(text: "\(error)", needsSignIn: false))
    }
  }

  /// The server accepts a code from the present number alone. It answers with a session, which is ended: the user has one.
  private func verify(numberCode: String) async -> SettingsMachine.Event {
    guard let username = try? services.storage.load().username else { return .failed(.noNumber) }
    do throws(NetworkError) {
      let answer = try await services.backend.call(
        MFAOperations.verifyOTP, VerifyOTPRequest(username: username, otp: numberCode))
      _ = try? await services.backend.call(MFAOperations.revokeToken, RevokeRequest(), token: answer.token)
      return .changed
    } catch {
      return .failed(SettingsMachine.Failure(text: "\(error)", needsSignIn: false))
    }
  }

  private func readRegistration(_ deviceID: String) async -> (SettingsState.Registration?, NetworkError?) {
    do throws(NetworkError) {
      let answer = try await services.session.call(
        MFAOperations.deviceStatus, DeviceStatusRequest(deviceId: deviceID))
      let registration = SettingsState.Registration(
        isEnrolled: answer.enrolled, method: answer.method.flatMap(MFAMethod.init), hasKey: answer.hasPublicKey)
      return (registration, nil)
    } catch {
      return (nil, error)
    }
  }

  /// `nil` without a session, or if the server does not say it now.
  private func readSecondFactor() async -> SettingsState.SecondFactor? {
    guard await services.session.session != nil,
      let status = try? await services.session.call(MFAOperations.status, EmptyRequest())
    else { return nil }
    return SettingsState.SecondFactor(
      isEnabled: status.enabled, backupCodesRemaining: status.backup_codes_remaining,
      trustedDevices: status.trusted_devices_count, remembersThisDevice: status.device_trusted)
  }

  private func makeKey(_ protection: KeyProtection) async -> SettingsMachine.Event {
    do throws(EnrolmentError) {
      return .testedKey(try await services.enrolment.makeKey(protection))
    } catch {
      if case .security(let error) = error { return .keyFailed(error, await services.biometrics.capability()) }
      return .failed(SettingsMachine.Failure(error))
    }
  }

  private func report(_ change: () async throws(EnrolmentError) -> Void) async -> SettingsMachine.Event {
    do throws(EnrolmentError) {
      try await change()
      return .changed
    } catch {
      if case .security(let error) = error { return .keyFailed(error, await services.biometrics.capability()) }
      return .failed(SettingsMachine.Failure(error))
    }
  }
}

extension SettingsMachine.Failure {
  fileprivate static let noNumber = Self(
    text: "This device has no number for codes: enroll it again", needsSignIn: false)

  fileprivate init(_ error: EnrolmentError) {
    guard case .network(let reason) = error else {
      self.init(text: "\(error)", needsSignIn: false)
      return
    }
    self.init(
      text: reason.needsSignIn ? "Sign in to change the security of this device" : "\(reason)",
      needsSignIn: reason.needsSignIn)
  }
}
