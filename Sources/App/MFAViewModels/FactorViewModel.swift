internal import MFAClient
internal import MFAWire

/// Sets up and manages the second factor of the account: the authenticator's secret, backup codes, codes by e-mail,
/// security keys, and the devices that the server remembers.
///
/// It needs a full session. The server decides everything; codes and secrets are kept only in the state, while the user
/// must see them. Calls from several tasks are safe: while a step runs, events that do not fit it change nothing.
public actor FactorViewModel: MachineDriven {
  /// The state now.
  public var state: FactorState { machine.state }

  private let services: DeviceServices
  var machine: FactorMachine
  nonisolated let publisher = StatePublisher<FactorState>()

  /// Creates a view model for the app of `services`.
  public init(services: DeviceServices) {
    self.services = services
    machine = FactorMachine(supportsSecurityKeys: services.securityKeys != nil)
  }

  /// The state now and after each change. The stream ends when the view model is released.
  public func states() -> AsyncStream<FactorState> { publisher.states(beginningWith: state) }

  /// Call it when the screen appears, and when the app returns to the front. Asks the server what the account has, unless
  /// a code is asked for or shown.
  public func appear() async { await handle(.appeared) }

  /// Call it when the user chooses an option of the state. An option that is not offered any more does nothing.
  public func choose(_ option: FactorState.Option) async { await handle(.chose(option)) }

  /// Call it when the user sends the code that the state asks for. Spaces and hyphens do not matter.
  public func enter(code: String) async { await handle(.enteredCode(code)) }

  /// Call it when the user sends an address for codes by e-mail.
  public func enter(email: String) async { await handle(.enteredEmail(email)) }

  /// Call it when the user revokes the trust in one device. A device that is not listed any more does nothing.
  public func revoke(_ id: FactorState.TrustedDevice.ID) async { await handle(.revoked(id)) }

  /// Call it when the user removes a security key. One that is not listed any more does nothing.
  public func remove(_ id: FactorState.SecurityKey.ID) async { await handle(.removed(id)) }

  // MARK: Effects

  func perform(_ effect: FactorMachine.Effect) async -> FactorMachine.Event? {
    do throws(NetworkError) {
      return try await carryOut(effect)
    } catch {
      return .failed(FactorFailure(error, isOfReading: effect == .readAccount))
    }
  }

  private func carryOut(_ effect: FactorMachine.Effect) async throws(NetworkError) -> FactorMachine.Event {
    let session = services.session
    switch effect {
    case .readAccount: return .readAccount(try await account())
    case .offerSecret:
      let offer = try await session.call(MFAOperations.enrollAuthenticator, AuthenticatorRequest())
      return .offered(.init(secret: offer.secret, uri: offer.qr_code_url, backupCodes: offer.backup_codes))
    case .confirm(let code): return try await confirm(code)
    case .renewBackupCodes(let code):
      let answer = try await session.call(MFAOperations.regenerateBackupCodes, CodeRequest(code: code))
      return .accepted(backupCodes: answer.backup_codes)
    case .switchOff(let code):
      _ = try await session.call(MFAOperations.disableAuthenticator, CodeRequest(code: code))
      // The server has deleted all trust. A token that stays here would be refused, and dropped then.
      try? services.trust.save(nil)
      return .accepted(backupCodes: [])
    case .offerEmail(let address):
      _ = try await session.call(MFAOperations.offerEmail, EmailRequest(email: address))
      return .sentEmail(to: address)
    case .confirmEmail(let address, let code):
      _ = try await session.call(MFAOperations.confirmEmail, EmailCodeRequest(email: address, code: code))
      return .accepted(backupCodes: [])
    case .revoke(let ids):
      for (index, id) in ids.enumerated() {
        do throws(NetworkError) {
          _ = try await session.call(MFAOperations.revokeTrustedDevice, TrustedDeviceRequest(id: id))
        } catch  where index > 0 {
          return .revokedSome(FactorFailure(error))
        }
      }
      return .revokedTrust
    case .registerSecurityKey: return try await registerSecurityKey()
    case .removeSecurityKey(let id):
      _ = try await session.call(MFAOperations.removeSecurityKey, SecurityKeyRequest(id: id))
      return .removedSecurityKey
    }
  }

  private func confirm(_ code: String) async throws(NetworkError) -> FactorMachine.Event {
    do throws(NetworkError) {
      _ = try await services.session.call(MFAOperations.confirmAuthenticator, CodeRequest(code: code))
    } catch {
      if error.mayHaveBeenCarriedOut { return .confirmationLost(FactorFailure(error)) }
      if error.refusalCode == "already_enabled" { return .alreadySetUp(FactorFailure(error)) }
      throw error
    }
    return .accepted(backupCodes: [])
  }

  private func registerSecurityKey() async throws(NetworkError) -> FactorMachine.Event {
    guard let keys = services.securityKeys else { return .securityKeyFailed(.unknownKey) }
    let options = try await services.session.call(MFAOperations.registrationOptions, EmptyRequest())
    var credential: RegistrationRequest
    do throws(SecurityKeyError) {
      credential = try await keys.register(options)
    } catch {
      return .securityKeyFailed(error)
    }
    credential.name = "Security key of " + services.app.deviceModel
    _ = try await services.session.call(MFAOperations.registerSecurityKey, credential)
    return .registeredSecurityKey
  }

  private func account() async throws(NetworkError) -> FactorMachine.Account {
    let status = try await services.session.call(MFAOperations.status, EmptyRequest())
    let trusted =
      status.trusted_devices_count > 0
      ? try await services.session.call(MFAOperations.trustedDevices, EmptyRequest()).devices : []
    let keys =
      status.methods.contains("webauthn")
      ? try await services.session.call(MFAOperations.securityKeys, EmptyRequest()).keys : []
    return FactorMachine.Account(
      isEnabled: status.enabled, methods: status.methods, backupCodesRemaining: status.backup_codes_remaining,
      trustedDevices: trusted.map {
        .init(id: $0.id, name: $0.device_name, lastUsed: $0.last_used_at, expires: $0.expires_at)
      },
      securityKeys: keys.map { .init(id: $0.id, name: $0.name, created: $0.createdAt, lastUsed: $0.lastUsedAt) })
  }
}
