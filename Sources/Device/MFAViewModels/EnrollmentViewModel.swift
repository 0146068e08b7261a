internal import ByteCoding
internal import MFAClient
internal import MFAWire

/// Enrols this device: finds out what it offers, makes and tests a key, and registers it with the server.
///
/// The state is a value that only events change. Each change is published to `states`. Events are handled one after
/// another; a call returns when its event and the effects of it are finished.
public actor EnrollmentViewModel {
  /// The state now.
  public private(set) var state = EnrollmentState()

  private let services: DeviceServices
  private let app: AppDescription
  private var machine = EnrollmentMachine()
  private let publisher = StatePublisher<EnrollmentState>()

  /// Creates a view model for the account of `app`.
  public init(services: DeviceServices, app: AppDescription) {
    self.services = services
    self.app = app
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<EnrollmentState> { publisher.states(beginningWith: state) }

  /// Call it when the screen appears, and when the app returns to the front.
  public func appear() async { await handle(.appeared) }

  /// Call it when the user chooses an option of the state. An option that is not offered any more does nothing.
  ///
  /// For `.useSMS` call `register(phoneNumber:)`.
  public func choose(_ option: EnrollmentState.Option) async { await handle(.chose(option)) }

  /// Call it when the user does not want the passcode instead of biometry.
  public func declinePasscode() async { await handle(.declinedPasscode) }

  /// Call it when the user of a device without security registers a phone number for codes.
  public func register(phoneNumber: String) async { await handle(.enteredPhone(phoneNumber)) }

  private func handle(_ event: EnrollmentMachine.Event) async {
    var next: EnrollmentMachine.Event? = event
    while let event = next {
      let effect = machine.apply(event)
      publish()
      next = nil
      if let effect { next = await perform(effect) }
    }
  }

  private func publish() {
    guard state != machine.state else { return }
    state = machine.state
    publisher.publish(state)
  }

  // MARK: Effects

  private func perform(_ effect: EnrollmentMachine.Effect) async -> EnrollmentMachine.Event? {
    switch effect {
    case .readCapability:
      return .readCapability(await services.biometrics.capability(), await services.biometrics.biometryType())
    case .makeKey(let protection): return await makeKey(protection)
    case .abandonKey:
      await deleteKeys()
      return .readCapability(await services.biometrics.capability(), await services.biometrics.biometryType())
    case .register(let method, let pair, let phoneNumber):
      return await register(method, pair, phoneNumber: phoneNumber)
    case .openSettings:
      app.openSettings()
      return nil
    }
  }

  /// Makes a key and signs with it. A user who declines here has given the server nothing.
  private func makeKey(_ protection: KeyProtection) async -> EnrollmentMachine.Event {
    do throws(DeviceSecurityError) {
      let tag = protection.authMethod == .passcode ? KeyTag.passcode(of: app.bundleID) : .biometric(of: app.bundleID)
      let pair = try await services.keychain.createKey(tag, protection: protection)
      _ = try await services.keychain.sign([UInt8](repeating: 0, count: 32), with: tag, reason: "Test the new key")
      return .testedKey(pair)
    } catch {
      return .keyFailed(error)
    }
  }

  /// Leaves no key without an enrolment. A key that cannot be deleted is replaced when the next one is made.
  private func deleteKeys() async {
    for tag in [KeyTag.biometric(of: app.bundleID), .passcode(of: app.bundleID)] {
      try? await services.keychain.deleteKey(tag)
    }
  }

  private func register(
    _ method: MFAMethod, _ pair: KeyPair?, phoneNumber: String?
  ) async -> EnrollmentMachine.Event {
    var record: MFARecord
    do throws(StorageError) { record = try services.storage.load() } catch { return .registrationFailed("\(error)") }
    do throws(NetworkError) {
      let request = EnrollRequest(
        username: app.username, phoneNumber: phoneNumber ?? app.phoneNumber,
        publicKey: pair.map { Base64.encode($0.publicKey) }, method: method.rawValue, deviceId: record.deviceID,
        deviceModel: app.deviceModel, authMethod: pair?.protection.authMethod.rawValue)
      _ = try await services.backend.call(MFAOperations.enroll, request)
      record.phoneNumber = request.phoneNumber
    } catch {
      return .registrationFailed("\(error)")
    }
    record.username = app.username
    record.method = method
    record.authMethod = pair?.protection.authMethod
    // The server has the key now, so it is kept even if the app cannot remember it.
    do throws(StorageError) {
      try services.storage.save(record)
      return .registered(unsaved: nil)
    } catch {
      return .registered(unsaved: "\(error)")
    }
  }
}
