internal import ByteCoding
internal import MFAClient

/// Enrols this device: finds out what it offers, makes and tests a key, and registers it with the server.
///
/// The state is a value that only events change. Each change is published to `states`. Events are handled one after
/// another; a call returns when its event and the effects of it are finished.
public actor EnrollmentViewModel: MachineDriven {
  /// The state now.
  public var state: EnrollmentState { machine.state }

  private let services: DeviceServices
  var machine: EnrollmentMachine
  nonisolated let publisher = StatePublisher<EnrollmentState>()

  /// Creates a view model for the app of `services`.
  public init(services: DeviceServices) {
    self.services = services
    machine = EnrollmentMachine(username: services.app.username)
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<EnrollmentState> { publisher.states(beginningWith: state) }

  /// Call it when the screen appears, and when the app returns to the front: an enrolment that was
  /// interrupted is finished.
  public func appear() async { await handle(.appeared) }

  /// Call it when the user enters the name of the account.
  public func enter(username: String) async { await handle(.enteredUsername(username)) }

  /// Call it when the user enters a link code, which adds the device to an account that exists: the code of another
  /// device of the account, or of an operator. Spaces and dashes do not matter. The code is used until the device is
  /// enrolled; an empty one is none.
  public func enter(linkCode: String) async { await handle(.enteredLinkCode(TypedCode.plain(linkCode))) }

  /// Call it when the user chooses an option of the state. An option that is not offered any more does nothing.
  ///
  /// For `.useSMS` call `register(phoneNumber:)`.
  public func choose(_ option: EnrollmentState.Option) async { await handle(.chose(option)) }

  /// Call it when the user does not want the passcode instead of biometry.
  public func declinePasscode() async { await handle(.declinedPasscode) }

  /// Call it when the user of a device without security registers a phone number for codes.
  public func register(phoneNumber: String) async { await handle(.enteredPhone(phoneNumber)) }

  // MARK: Effects

  func perform(_ effect: EnrollmentMachine.Effect) async -> EnrollmentMachine.Event? {
    switch effect {
    case .readDevice: return await readDevice()
    case .makeKey(let protection): return await makeKey(protection)
    case .abandonKey:
      await services.enrolment.discardNewKey()
      return await readDevice()
    case .register(_, let pair, let phoneNumber, let linkCode):
      return await register(pair, phoneNumber: phoneNumber, linkCode: linkCode)
    case .openSettings:
      services.app.openSettings()
      return nil
    }
  }

  private func readDevice() async -> EnrollmentMachine.Event {
    do throws(EnrolmentError) {
      return await device(with: try await services.enrolment.recover())
    } catch {
      return .readDevice(
        EnrollmentMachine.Device(
          capability: await services.biometrics.capability(), biometryType: await services.biometrics.biometryType(),
          method: nil, authMethod: nil, failure: "\(error)"))
    }
  }

  private func device(with status: EnrolmentStatus) async -> EnrollmentMachine.Event {
    .readDevice(
      EnrollmentMachine.Device(
        capability: await services.biometrics.capability(), biometryType: await services.biometrics.biometryType(),
        method: status.hasLostKey ? nil : status.record.method, authMethod: status.record.authMethod,
        failure: status.failure.map { "\($0)" }))
  }

  /// Makes a key and signs with it. A user who declines here has given the server nothing.
  private func makeKey(_ protection: KeyProtection) async -> EnrollmentMachine.Event {
    do throws(EnrolmentError) {
      // An earlier attempt may have succeeded. Its status is not read again: a second reading may fail, and then says
      // nothing that ends this step.
      let status = try await services.enrolment.recover()
      if status.record.isEnrolled, !status.hasLostKey { return await device(with: status) }
      return .testedKey(try await services.enrolment.makeKey(protection))
    } catch {
      if case .security(let error) = error { return .keyFailed(error) }
      return .failed("\(error)")
    }
  }

  private func register(
    _ pair: KeyPair?, phoneNumber: String?, linkCode: String?
  ) async -> EnrollmentMachine.Event {
    do throws(EnrolmentError) {
      try await services.enrolment.enroll(
        as: state.username, phoneNumber: phoneNumber ?? services.app.phoneNumber, key: pair, linkCode: linkCode)
      return .registered
    } catch {
      // The owner may have removed the passcode, and with it the key.
      if case .security(let error) = error, pair != nil { return .keyFailed(error) }
      return .failed("\(error)")
    }
  }
}
