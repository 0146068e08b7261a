internal import ByteCoding
internal import MFAClient

/// The rules of the screen for the second factor's set-up: an event changes the state and asks for at most one effect.
struct FactorMachine: StateMachine {
  /// What the server says about the account.
  struct Account: Sendable, Hashable {
    let isEnabled: Bool
    let methods: [String]
    let backupCodesRemaining: Int
    let trustedDevices: [FactorState.TrustedDevice]
    var securityKeys: [FactorState.SecurityKey] = []
  }

  /// What the user does, and what effects report.
  enum Event: Sendable, Hashable {
    case appeared
    case chose(FactorState.Option)
    case enteredCode(String)
    case enteredEmail(String)
    case revoked(FactorState.TrustedDevice.ID)
    case removed(FactorState.SecurityKey.ID)
    case readAccount(Account)
    case offered(FactorState.Offer)
    case sentEmail(to: String)
    /// The server has done what the code was for. Backup codes are those that it has made.
    case accepted(backupCodes: [String])
    /// The answer to the first code of an offer was lost: the server may have put the offer into force.
    case confirmationLost(FactorFailure)
    /// The account has an authenticator already, so that the server confirms no offer.
    case alreadySetUp(FactorFailure)
    case revokedTrust
    /// The server has revoked the trust in some of the devices, and not in the rest.
    case revokedSome(FactorFailure)
    case registeredSecurityKey
    case removedSecurityKey
    case securityKeyFailed(SecurityKeyError)
    case failed(FactorFailure)
  }

  /// What the view model does next.
  enum Effect: Sendable, Hashable {
    case readAccount
    case offerSecret
    case confirm(code: String)
    case renewBackupCodes(code: String)
    case switchOff(code: String)
    case offerEmail(String)
    case confirmEmail(String, code: String)
    case revoke([FactorState.TrustedDevice.ID])
    case registerSecurityKey
    case removeSecurityKey(FactorState.SecurityKey.ID)
  }

  private(set) var state = FactorState()
  /// The offer that may be in force, although no answer has said so: its backup codes are nowhere else.
  private var unsettledOffer: FactorState.Offer?

  init(supportsSecurityKeys: Bool = false) { state.supportsSecurityKeys = supportsSecurityKeys }

  mutating func apply(_ event: Event) -> Effect? {
    switch (event, state.phase) {
    // While a code is asked for or shown, the screen stays as it is.
    case (.appeared, .loading), (.appeared, .unavailable): return begin(.readAccount)
    case (.appeared, .ready) where state.codePurpose == nil && state.backupCodes.isEmpty: return begin(.readAccount)
    case (.chose(let option), .ready) where state.options.contains(option): return choose(option)
    case (.enteredCode(let text), .ready): return enter(code: TypedCode.plain(text.prefix(1024)))
    case (.enteredEmail(let text), .ready) where state.asksEmail:
      let address = text.filter { !$0.isWhitespace }
      if !address.isEmpty { return begin(.offerEmail(address)) }
      state.errorText = "Enter an address."
    case (.revoked(let id), .ready) where state.trustedDevices.contains { $0.id == id }: return begin(.revoke([id]))
    case (.removed(let id), .ready) where state.securityKeys.contains { $0.id == id }:
      return begin(.removeSecurityKey(id))
    case (.readAccount(let account), .working): show(account)
    case (.offered(let offer), .working):
      (state.phase, state.offer, state.codePurpose, unsettledOffer) = (.ready, offer, .setUp, nil)
    case (.sentEmail(let address), .working): (state.phase, state.codePurpose) = (.ready, .email(address))
    case (.accepted(let codes), .working): return accepted(codes)
    case (.confirmationLost(let failure), .working):
      unsettledOffer = state.offer
      return readAccount(after: failure)
    case (.alreadySetUp(let failure), .working):
      (state.codePurpose, state.offer) = (nil, nil)
      return readAccount(after: failure)
    case (.revokedTrust, .working):
      state.noticeText = "The server asks for a code there again."
      return .readAccount
    case (.revokedSome(let failure), .working): return readAccount(after: failure)
    case (.registeredSecurityKey, .working):
      state.noticeText = "The security key signs in from now on."
      return .readAccount
    case (.removedSecurityKey, .working):
      state.noticeText = "The security key was removed."
      return .readAccount
    case (.securityKeyFailed(let error), .working): (state.phase, state.errorText) = (.ready, "\(error)")
    case (.failed(let failure), .working):
      if failure.mayHaveBeenCarriedOut { return readAccount(after: failure) }
      fail(failure)
    default: break
    }
    return nil
  }

  private mutating func begin(_ effect: Effect) -> Effect {
    (state.phase, state.errorText, state.needsSignIn) = (.working, nil, false)
    if effect != .readAccount { state.noticeText = nil }
    return effect
  }

  private mutating func choose(_ option: FactorState.Option) -> Effect? {
    (state.errorText, state.noticeText) = (nil, nil)
    switch option {
    case .setUp: return begin(.offerSecret)
    case .renewBackupCodes: state.codePurpose = .backupCodes
    case .switchOff: state.codePurpose = .switchOff
    case .addSecurityKey: return begin(.registerSecurityKey)
    case .revokeAll: return begin(.revoke(state.trustedDevices.map(\.id)))
    case .cancel:
      (state.codePurpose, state.offer) = (nil, nil)
      if unsettledOffer != nil { return begin(.readAccount) }
    case .hideBackupCodes: state.backupCodes = []
    }
    return nil
  }

  private mutating func enter(code: String) -> Effect? {
    guard let purpose = state.codePurpose else { return nil }
    guard !code.isEmpty else {
      state.errorText = "Enter the code."
      return nil
    }
    switch purpose {
    case .setUp: return begin(.confirm(code: code))
    case .backupCodes: return begin(.renewBackupCodes(code: code))
    case .switchOff: return begin(.switchOff(code: code))
    case .email(let address): return begin(.confirmEmail(address, code: code))
    }
  }

  private mutating func show(_ account: Account) {
    (state.phase, state.isEnabled, state.methods) = (.ready, account.isEnabled, account.methods)
    (state.backupCodesRemaining, state.trustedDevices) = (account.backupCodesRemaining, account.trustedDevices)
    state.securityKeys = account.securityKeys
    settleLostChange()
    guard let offer = unsettledOffer else { return }
    if account.methods.contains("totp") {
      settle(offer)
      state.errorText = nil
    } else if state.codePurpose == nil {
      // The user has given it up.
      unsettledOffer = nil
    }
  }

  /// Ends the request for a code if the account already has what the code was for: only the answer was lost.
  private mutating func settleLostChange() {
    switch state.codePurpose {
    case .switchOff where !state.isEnabled: state.noticeText = "The second factor is off."
    case .email(let address) where state.methods.contains("email"):
      state.noticeText = "Codes can be sent to \(address)."
    // New backup codes are in the lost answer alone: another code makes others.
    case .setUp, .backupCodes, .switchOff, .email, nil: return
    }
    (state.codePurpose, state.errorText) = (nil, nil)
  }

  /// Shows the backup codes of an offer that is in force.
  private mutating func settle(_ offer: FactorState.Offer?) {
    state.backupCodes = offer?.backupCodes ?? []
    state.noticeText = "The second factor is on."
    (state.codePurpose, state.offer, unsettledOffer) = (nil, nil, nil)
  }

  private mutating func accepted(_ codes: [String]) -> Effect {
    switch state.codePurpose {
    case .setUp: settle(state.offer)
    case .backupCodes:
      state.backupCodes = codes
      state.noticeText = "The old backup codes are void."
    case .switchOff: state.noticeText = "The second factor is off."
    case .email(let address): state.noticeText = "Codes can be sent to \(address)."
    case nil: break
    }
    (state.codePurpose, state.offer) = (nil, nil)
    return .readAccount
  }

  /// Shows `failure`, and asks what the account has now.
  private mutating func readAccount(after failure: FactorFailure) -> Effect {
    fail(failure)
    state.phase = .working
    return .readAccount
  }

  private mutating func fail(_ failure: FactorFailure) {
    // Backup codes are shown until the user has kept them: no later answer has them.
    let hasNothing =
      state.methods.isEmpty && !state.isEnabled && state.codePurpose == nil && state.backupCodes.isEmpty
    state.phase = hasNothing && failure.isOfReading ? .unavailable : .ready
    (state.errorText, state.needsSignIn) = (failure.text, failure.needsSignIn)
  }
}

/// Why the server did not do what the screen asked for.
struct FactorFailure: Sendable, Hashable {
  let text: String
  let needsSignIn: Bool
  /// Whether the account could not be read, so that the screen has nothing to show.
  let isOfReading: Bool
  /// Whether the account may have changed all the same, because the answer was lost.
  let mayHaveBeenCarriedOut: Bool

  init(_ error: NetworkError, isOfReading: Bool = false) {
    mayHaveBeenCarriedOut = !isOfReading && error.mayHaveBeenCarriedOut
    needsSignIn = error.needsSignIn
    text =
      error.needsSignIn ? "Sign in, with the second factor if there is one, to do this." : ChallengeFailure(error).text
    self.isOfReading = isOfReading
  }
}
