internal import ByteCoding
internal import Foundation

/// Enrolling and removing devices, and changing their method.
public struct Enrolment: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The request to enrol a device.
  public struct Application: Sendable {
    public let username: Username
    public let deviceID: DeviceID
    public let model: DeviceModel
    public let method: MFAMethod
    public let authMethod: AuthMethod?
    public let publicKey: DevicePublicKey?
    public let phoneNumber: PhoneNumber?
    /// The code that a device of the account, or an operator, issued for this device.
    public let linkCode: CodeGuess?
    /// The token of a recovery that is ready to be completed.
    public let recoveryToken: String?
    /// The answer of the identity provider that the new account is connected to.
    public let identity: Federation.Answer?

    /// - Throws: if the key or the number that the method requires is missing, or if an identity comes with a proof for
    ///   an existing account.
    public init(
      username: Username, deviceID: DeviceID, model: DeviceModel, method: MFAMethod, authMethod: AuthMethod?,
      publicKey: DevicePublicKey?, phoneNumber: PhoneNumber?, linkCode: CodeGuess? = nil,
      recoveryToken: String? = nil, identity: Federation.Answer? = nil
    ) throws(InvalidValue) {
      if method == .secureEnclave, publicKey == nil {
        throw InvalidValue(field: "publicKey", rule: "is required for the method secureEnclave")
      }
      if method == .smsOTP, phoneNumber == nil {
        throw InvalidValue(field: "phoneNumber", rule: "is required for the method smsOTP")
      }
      if identity != nil, linkCode != nil || recoveryToken != nil {
        throw InvalidValue(field: "idToken", rule: "cannot be combined with linkCode or recoveryToken")
      }
      self.username = username
      self.deviceID = deviceID
      self.model = model
      self.method = method
      self.authMethod = authMethod
      self.publicKey = method == .secureEnclave ? publicKey : nil
      self.phoneNumber = phoneNumber
      self.linkCode = linkCode
      self.recoveryToken = recoveryToken
      self.identity = identity
    }
  }

  /// Enrols a device, and its user if the name is new, and binds it to the calling app instance.
  ///
  /// A name belongs to the first client that enrols it. A further device of the user needs a link code, or a session
  /// of the user with a recent proof; a new key for an enrolled device needs such a session. A removed device is
  /// treated like a new one: its earlier binding to the caller proves nothing, since it may have been removed because
  /// it was lost. A user without a device needs a recovery or an operator's code.
  ///
  /// An identity of a provider connects a new account only: an existing account is connected by a session of it.
  ///
  /// A caller without a session of the account is refused what it would be refused for a new account, and only then
  /// learns that the name has one. So each name that it asks about successfully costs it an account.
  ///
  /// A repeated call has the same result and changes nothing: the app may have lost the response.
  ///
  /// - Throws: `.deviceExists`, `.forbidden`, `.tooManyDevices`, `.tooManyAccounts`; what `freshSession`,
  ///   `spendLinkCode` and `completeRecovery` throw; with an identity `.federationRefused`, `.identityConnected` and
  ///   `.federationOff`.
  public func enrol(_ application: Application, by caller: Caller) async throws -> Device {
    try context.policy.checkUnlock(application.method, application.authMethod)
    let phoneNumber = try application.phoneNumber.map {
      try context.vault.seal($0.text, for: Self.phonePlace(application.deviceID))
    }
    let newID = context.entropy.uuid()
    let now = context.clock.now()
    let examined = try await application.identity.examined(in: context, by: caller, at: now)
    return try await context.write(by: caller, at: now) { work in
      let known = try work.records.device(application.deviceID)
      // An older version enrolled them.
      guard known != nil || PathSegment.carries(application.deviceID.text) else {
        throw InvalidValue(field: "deviceId", rule: PathSegment.rule)
      }
      let user = try work.records.user(named: application.username)
      if let known, let user, try application.isDone(by: known, of: user, for: caller, work.vault),
        try work.isConnected(examined, to: user)
      {
        work.wakeSockets(of: user.id)
        return known
      }
      var subject: ProviderSubject?
      if let token = application.recoveryToken {
        try work.completeRecovery(token, application.username, replacing: known, of: user)
      } else {
        subject = try work.admit(application, enrolling: known, for: user, examined)
      }
      let binding = caller.identity.binding
      let owner =
        user
        ?? User(
          id: newID, username: application.username, createdAt: work.now, createdBy: binding,
          language: caller.languages.tags.first)
      if user == nil {
        try work.records.insert(owner)
        if let subject { try work.connect(subject, to: owner) }
      }
      let device = Device(
        id: application.deviceID, userID: owner.id, model: application.model, method: application.method,
        authMethod: application.authMethod, publicKey: application.publicKey, phoneNumber: phoneNumber,
        binding: binding, enrolledAt: work.now)
      if let known { try work.endProofs(of: known, enrolledAgainBy: application, of: owner) }
      try work.records.save(device)
      try work.records.removeChallenges(of: device.id)
      let isNew = known == nil || known?.removedAt != nil || application.recoveryToken != nil
      try work.note(
        isNew ? .deviceEnrolled : .deviceReenrolled, of: owner,
        ["device=\(device.id.text)", "method=\(device.method.rawValue)", "attested=\(device.isAttested)"])
      try work.notify(owner.id, of: .deviceEnrolled, concerning: device.id.text)
      return device
    }
  }

  /// Removes a device and everything that belongs to it: challenges, sessions, trust.
  ///
  /// - Throws: `.forbidden` for another account; `.deviceNotEnrolled`; what `freshSession` throws.
  public func unenrol(_ username: Username, _ deviceID: DeviceID, by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let (device, user) = try work.ownDevice(deviceID, of: username, by: .session)
      try work.remove(device, of: user)
      try work.note(.deviceUnenrolled, of: user, ["device=\(deviceID.text)"])
      try work.notify(user.id, of: .deviceRemoved, concerning: deviceID.text)
    }
  }

  /// Gives a device a key of its own, or replaces its key.
  ///
  /// A repeated call has the same result and changes nothing: the app may have lost the response.
  ///
  /// - Throws: `.boundElsewhere`, `.forbidden`, `.deviceNotEnrolled`; what `freshSession` throws.
  public func upgrade(
    _ username: Username, _ deviceID: DeviceID, to publicKey: DevicePublicKey, authMethod: AuthMethod?,
    by caller: Caller
  ) async throws {
    try context.policy.checkUnlock(.secureEnclave, authMethod)
    try await context.write(by: caller) { work in
      var (device, user) = try work.ownDevice(deviceID, of: username, by: .boundSession)
      guard device.publicKey != publicKey || device.authMethod != authMethod else {
        return work.wakeSockets(of: user.id)
      }
      device.method = .secureEnclave
      device.publicKey = publicKey
      device.authMethod = authMethod
      try work.change(device, of: user, .deviceUpgraded)
    }
  }

  /// Removes the key of a device, which signs in by codes to its number from then on.
  ///
  /// The app that calls this has lost the key together with the device's passcode, so its only proof is the attested
  /// key that the device is bound to. A thief of the device gains no more than the code that is sent to the enrolled
  /// number, and the user's other devices get a notice. The device's sessions end, and so does the trust that let it
  /// skip the second factor: the key had proved them.
  ///
  /// A repeated call has the same result and changes nothing: the app may have lost the response, and its user may have
  /// signed in by a code since.
  ///
  /// - Throws: `.forbidden` where codes do not sign in; `.noPhoneNumber`; `.boundElsewhere`; `.deviceNotEnrolled`;
  ///   `.accountLocked`.
  public func downgrade(_ username: Username, _ deviceID: DeviceID, by caller: Caller) async throws {
    guard context.policy.deviceUnlock == .any else { throw MFARefusal.forbidden }
    try await context.write(by: caller) { work in
      var (device, user) = try work.ownDevice(deviceID, of: username, by: .binding)
      guard device.phoneNumber != nil else { throw MFARefusal.noPhoneNumber }
      guard device.method != .smsOTP || device.publicKey != nil else { return work.wakeSockets(of: user.id) }
      device.method = .smsOTP
      // The last use was of the key. The number is not proved yet.
      device.lastUsed = nil
      device.publicKey = nil
      device.authMethod = nil
      try work.change(device, of: user, .deviceDowngraded)
      try work.records.removeTrustedDevices(of: user.id, boundTo: device.binding)
      try work.endSessions(of: user.id, on: device.id)
    }
  }

  /// The vault's place for a device's number.
  static func phonePlace(_ deviceID: DeviceID) -> String { "device:\(deviceID.text):phone" }
}

extension Enrolment.Application {
  /// Whether `known` is the result of this request, by the same app instance.
  fileprivate func isDone(by known: Device, of user: User, for caller: Caller, _ vault: Vault) throws -> Bool {
    guard known.userID == user.id, known.removedAt == nil, user.lockedAt == nil,
      known.binding == caller.identity.binding, known.method == method, known.publicKey == publicKey,
      known.authMethod == authMethod, known.model == model
    else { return false }
    return try known.phoneNumber.map { try vault.openText($0, for: Enrolment.phonePlace(known.id)) }
      == phoneNumber?.text
  }
}

extension Federation.Answer? {
  fileprivate func examined(
    in context: DomainContext, by caller: Caller, at now: Timestamp
  ) async throws -> ExaminedAnswer? {
    guard let self else { return nil }
    return try await context.examine(self, by: caller, at: now)
  }
}

extension Device {
  fileprivate func isRemoved(from user: User) -> Bool { removedAt != nil && userID == user.id }
}

/// The proof that an operation on an enrolled device requires.
private enum DeviceProof {
  /// A session of the user, of any app instance.
  case session
  /// A session of the user, by the app instance that the device is bound to.
  case boundSession
  /// That app instance, without a session. A debug build has no instance of its own, so it needs the session as well.
  case binding
}

extension UnitOfWork where Initiator == Caller {
  /// Admits the enrolment by a link code or by a session, or as that of a new account.
  ///
  /// - Returns: The user of the provider that the new account is connected to.
  /// - Throws: `RecordedRefusal`, which for too many devices leaves the link code valid; `InvalidValue`.
  fileprivate func admit(
    _ application: Enrolment.Application, enrolling known: Device?, for user: User?, _ examined: ExaminedAnswer?
  ) throws -> ProviderSubject? {
    if let code = application.linkCode, known == nil || user.map({ known?.isRemoved(from: $0) == true }) == true {
      let valid: OneTimeCode?
      do {
        valid = try spendLinkCode(code, for: user, named: application.username)
      } catch is RecordedRefusal where known.map({ $0.binding != caller.identity.binding }) == true {
        // The refusal of a wrong code would tell another app instance who the user of a removed device was.
        throw RecordedRefusal(.deviceExists)
      }
      do { if let user { try checkRoom(for: user) } } catch let refusal as MFARefusal {
        // The code of an operator serves when the user has removed a device.
        if let valid { try records.update(valid) }
        throw try refuse(application, refusal, for: user)
      }
      return nil
    }
    do {
      return try admit(application.username, enrolling: known, for: user, examined)
    } catch let refusal as MFARefusal {
      throw try refuse(application, refusal, for: user)
    }
  }

  /// Records that an enrolment was refused, and returns the refusal to throw.
  private func refuse(
    _ application: Enrolment.Application, _ refusal: MFARefusal, for user: User?
  ) throws -> RecordedRefusal {
    try note(
      .enrolmentRefused, account: user?.username.key ?? application.username.key,
      ["device=\(application.deviceID.text)", "reason=\(refusal.cause)"])
    return RecordedRefusal(refusal)
  }

  private func admit(
    _ username: Username, enrolling known: Device?, for user: User?, _ examined: ExaminedAnswer?
  ) throws -> ProviderSubject? {
    // For any name: another app instance could otherwise find out who the user of a device is.
    if let known, known.binding != caller.identity.binding || known.userID != user?.id { throw MFARefusal.deviceExists }
    let owner = try caller.session.flatMap { try records.session($0.sessionID) }?.userID
    // Before the first difference between a name with an account and one without.
    let isOwn = user != nil && owner == user?.id
    let subject = isOwn ? nil : try admitNew(username, account: user?.username.key ?? username.key, examined)
    guard let user else { return subject }
    if examined != nil {
      throw InvalidValue(field: "idToken", rule: "is accepted for a new username only; use auth.oidc-bind")
    }
    let devices = try records.devices(of: user.id)
    let (session, _) = try freshSession()
    guard session.userID == user.id else { throw MFARefusal.forbidden }
    if !devices.contains(where: { $0.id == known?.id }) { try checkRoom(for: user) }
    return nil
  }

  /// Checks whether the caller may create an account with this name and this identity, as far as the name is free. The
  /// challenge of the identity is spent if the transaction is committed.
  private func admitNew(
    _ username: Username, account: String, _ examined: ExaminedAnswer?
  ) throws -> ProviderSubject? {
    try username.checkAsNew()
    try checkAccountLimit(for: account)
    return try examined.map { try admitNew($0, account: account) }
  }

  private func checkRoom(for user: User) throws {
    guard try records.devices(of: user.id).count < policy.mostDevices else {
      throw MFARefusal.tooManyDevices(limit: policy.mostDevices)
    }
  }

  /// Checks whether the caller may create another account. Debug builds share one identity, so they have no limit.
  ///
  /// - Throws: `RecordedRefusal` with `.tooManyAccounts`
  private func checkAccountLimit(for account: String) throws {
    let (binding, limit) = (caller.identity.binding, policy.mostAccountsOfInstance)
    guard binding != .debugBuild, try records.countUsers(createdBy: binding) >= limit else { return }
    let refusal = MFARefusal.tooManyAccounts(limit: limit)
    try note(.enrolmentRefused, account: account, ["reason=\(refusal.cause)"])
    throw RecordedRefusal(refusal)
  }

  /// Returns the device `deviceID` of `username` if the caller has the required proof.
  fileprivate func ownDevice(
    _ deviceID: DeviceID, of username: Username, by proof: DeviceProof
  ) throws -> (device: Device, user: User) {
    let known = try records.device(deviceID)
    let isBound = known?.binding == caller.identity.binding
    if proof != .session, let known, !isBound {
      throw MFARefusal.boundElsewhere(account: try records.user(known.userID)?.username.key ?? username.key)
    }
    if proof == .binding, isBound, caller.identity.binding != .debugBuild {
      guard let known, known.removedAt == nil, let user = try records.user(known.userID), user.isNamed(username)
      else { throw MFARefusal.deviceNotEnrolled }
      guard user.lockedAt == nil else { throw MFARefusal.accountLocked(retryAfter: nil) }
      return (known, user)
    }
    let (_, user) = try freshSession()
    guard user.isNamed(username) else { throw MFARefusal.forbidden }
    guard let known, known.removedAt == nil, known.userID == user.id else { throw MFARefusal.deviceNotEnrolled }
    return (known, user)
  }

  /// Ends what an enrolled device has proved and cannot prove in its new form. With its key, its sessions and the trust
  /// end, the caller's own session too, as by a downgrade. With its phone number, the trust ends: a code to another
  /// number must not replace a second factor.
  fileprivate func endProofs(
    of known: Device, enrolledAgainBy application: Enrolment.Application, of owner: User
  ) throws {
    guard known.removedAt == nil, known.userID == owner.id else { return }
    let losesKey = known.publicKey != nil && application.publicKey == nil
    let number = try known.phoneNumber.map { try vault.openText($0, for: Enrolment.phonePlace(known.id)) }
    guard losesKey || number != nil && number != application.phoneNumber?.text else { return }
    try records.removeTrustedDevices(of: owner.id, boundTo: known.binding)
    if losesKey { try endSessions(of: owner.id, on: known.id) }
  }

  /// Saves a device that signs in by another method now, and removes its challenges.
  fileprivate func change(_ device: Device, of user: User, _ event: AuditEvent) throws {
    try records.save(device)
    try records.removeChallenges(of: device.id)
    try note(event, of: user, ["device=\(device.id.text)"])
    try notify(user.id, of: .methodChanged, concerning: device.id.text)
  }
}

extension UnitOfWork {
  /// Removes `device` and everything that belongs to it. The rest of its record tells its own app that it was removed.
  /// An open link code may be the device's own, so it becomes invalid.
  func remove(_ device: Device, of user: User) throws {
    var removed = device
    removed.removedAt = now
    removed.publicKey = nil
    removed.phoneNumber = nil
    try records.save(removed)
    try records.removeChallenges(of: device.id)
    try records.removeTrustedDevices(of: user.id, boundTo: device.binding)
    try Linking.void(.user, for: user, in: records)
    _ = try records.removePushAddress(of: device.id)
    try endSessions(of: user.id, on: device.id)
  }
}
