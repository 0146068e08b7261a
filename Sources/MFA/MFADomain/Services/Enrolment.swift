internal import ByteCoding
internal import Foundation

/// Devices coming, changing their method, and going.
public struct Enrolment: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  public struct Application: Sendable {
    public let username: Username
    public let deviceID: DeviceID
    public let model: DeviceModel
    public let method: MFAMethod
    public let authMethod: AuthMethod?
    public let publicKey: DevicePublicKey?
    public let phoneNumber: PhoneNumber?
    /// What a device of the account, or an operator, gave out to let this one in.
    public let linkCode: CodeGuess?
    /// What a recovery that is ready is completed by.
    public let recoveryToken: String?

    /// - Throws: if the method lacks what it works with: a key, or a number.
    public init(
      username: Username, deviceID: DeviceID, model: DeviceModel, method: MFAMethod, authMethod: AuthMethod?,
      publicKey: DevicePublicKey?, phoneNumber: PhoneNumber?, linkCode: CodeGuess? = nil,
      recoveryToken: String? = nil
    ) throws(InvalidValue) {
      if method == .secureEnclave, publicKey == nil {
        throw InvalidValue(field: "publicKey", rule: "is required for the method secureEnclave")
      }
      if method == .smsOTP, phoneNumber == nil {
        throw InvalidValue(field: "phoneNumber", rule: "is required for the method smsOTP")
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
    }
  }

  /// Enrols a device, and its user if the name is new, and binds it to the calling app instance.
  ///
  /// A name belongs to the first client that enrols it. A further device of the user comes in by a link code, or by a
  /// session of the user with a recent proof; a new key for an enrolled device by such a session alone. A removed
  /// device comes back like a new one: its earlier binding to the caller proves nothing, since it may have been
  /// removed because it was lost. A user without a device comes in by a recovery, or by an operator's code.
  ///
  /// A repeated call is answered in the same way and changes nothing: the app may have lost the answer.
  public func enrol(_ application: Application, by caller: Caller) async throws -> Device {
    let now = context.clock.now()
    try context.policy.checkUnlock(application.method, application.authMethod)
    let phoneNumber = try application.phoneNumber.map {
      try context.vault.seal($0.text, for: Self.phonePlace(application.deviceID))
    }
    let newID = context.entropy.uuid()
    let outcome = try await context.store.write {
      [context] records -> Result<(device: Device, messages: [OutgoingMessage]), MFARefusal> in
      let (policy, vault) = (context.policy, context.vault)
      let known = try records.device(application.deviceID)
      let user = try records.user(named: application.username)
      if let known, let user, try application.isDone(by: known, of: user, for: caller, vault) {
        return .success((known, []))
      }
      var messages: [OutgoingMessage] = []
      if let token = application.recoveryToken {
        let completed = try AccountRecovery.complete(
          token, application.username, replacing: known, of: user, by: caller, context, in: records, at: now)
        switch completed {
        case .success(let told): messages = told
        case .failure(let refusal): return .failure(refusal)
        }
      } else if let refusal = try Self.refusal(
        of: application, enrolling: known, for: user, by: caller, policy, vault, in: records, at: now)
      {
        return .failure(refusal)
      }
      let binding = caller.identity.binding
      let owner = user ?? User(id: newID, username: application.username, createdAt: now, createdBy: binding)
      if user == nil {
        try application.username.checkAsNew()
        if let refusal = try records.refusalOfAccount(named: application.username, by: caller, policy, at: now) {
          return .failure(refusal)
        }
        try records.insert(owner)
      }
      let device = Device(
        id: application.deviceID, userID: owner.id, model: application.model, method: application.method,
        authMethod: application.authMethod, publicKey: application.publicKey, phoneNumber: phoneNumber,
        binding: binding, enrolledAt: now)
      try records.save(device)
      try records.removeChallenges(of: device.id)
      let isNew = known == nil || known?.removedAt != nil || application.recoveryToken != nil
      try records.note(
        isNew ? .deviceEnrolled : .deviceReenrolled, by: caller, account: owner.username.key,
        ["device=\(device.id.text)", "method=\(device.method.rawValue)", "attested=\(device.isAttested)"],
        at: now)
      _ = try records.append(.deviceEnrolled, to: owner.id, concerning: device.id.text, at: now)
      return .success((device, messages))
    }
    let (device, messages) = try outcome.get()
    for message in messages { context.outbox.send(message) }
    context.hub.notify(for: device.userID)
    return device
  }

  /// Why the caller may not enrol the device; `nil` if they may. A refusal leaves its line in the history, so it is
  /// to be committed.
  private static func refusal(
    of application: Application, enrolling known: Device?, for user: User?, by caller: Caller, _ policy: Policy,
    _ vault: Vault, in records: any Records, at now: Timestamp
  ) throws -> MFARefusal? {
    if let code = application.linkCode, known == nil || user.map({ known?.isRemoved(from: $0) == true }) == true {
      let judged = try Linking.judge(
        code, for: user, named: application.username, by: caller, vault, in: records, at: now)
      // Another app instance could find out by the refusal of a wrong code whose the removed device was.
      if case .failure(let refusal) = judged {
        return known.map { $0.binding != caller.identity.binding } == true ? .deviceExists : refusal
      }
      if let user { try checkRoom(for: user, policy, in: records) }
      return nil
    }
    do {
      try admit(caller, enrolling: known, for: user, policy: policy, in: records, at: now)
      return nil
    } catch let refusal as MFARefusal {
      try records.note(
        .enrolmentRefused, by: caller, account: application.username.key,
        ["device=\(application.deviceID.text)", "reason=\(refusal.cause)"], at: now)
      return refusal
    }
  }

  private static func admit(
    _ caller: Caller, enrolling known: Device?, for user: User?, policy: Policy, in records: any Records,
    at now: Timestamp
  ) throws {
    // Whatever the name: or another app instance could find out by it whose a device is.
    if let known, known.binding != caller.identity.binding || known.userID != user?.id { throw MFARefusal.deviceExists }
    guard let user else { return }
    let devices = try records.devices(of: user.id)
    let (session, _) = try records.freshSession(of: caller, maximumAge: policy.freshProof, at: now)
    guard session.userID == user.id else { throw MFARefusal.forbidden }
    if !devices.contains(where: { $0.id == known?.id }) { try checkRoom(for: user, policy, in: records) }
  }

  private static func checkRoom(for user: User, _ policy: Policy, in records: any Records) throws {
    guard try records.devices(of: user.id).count < policy.mostDevices else {
      throw MFARefusal.tooManyDevices(limit: policy.mostDevices)
    }
  }

  /// Removes a device and everything that hangs on it: challenges, sessions, trust.
  public func unenrol(_ username: Username, _ deviceID: DeviceID, by caller: Caller) async throws {
    let now = context.clock.now()
    let userID = try await context.store.write { [policy = context.policy] records in
      let (device, user) = try Self.ownDevice(
        deviceID, of: username, by: caller, policy: policy, in: records, at: now, mustBeBound: false)
      try records.remove(device, of: user, at: now)
      try records.note(
        .deviceUnenrolled, by: caller, account: user.username.key, ["device=\(deviceID.text)"], at: now)
      _ = try records.append(.deviceRemoved, to: user.id, concerning: deviceID.text, at: now)
      return user.id
    }
    context.hub.notify(for: userID)
  }

  /// Gives a device a key of its own, or another one in place of the old.
  public func upgrade(
    _ username: Username, _ deviceID: DeviceID, to publicKey: DevicePublicKey, authMethod: AuthMethod?,
    by caller: Caller
  ) async throws {
    try context.policy.checkUnlock(.secureEnclave, authMethod)
    try await change(username, deviceID, by: caller, .deviceUpgraded) { device in
      device.method = .secureEnclave
      device.publicKey = publicKey
      device.authMethod = authMethod
    }
  }

  /// Removes the key of a device, which signs in by codes to its number from then on.
  ///
  /// The app that calls this has lost the key together with the device's passcode, so its only proof is the attested
  /// key that the device is bound to. A thief of the device gains no more than the code that goes to the enrolled
  /// number; the user's other devices are told. What the key had proved ends with it: the device's sessions, and the
  /// trust that let it skip the second factor.
  public func downgrade(_ username: Username, _ deviceID: DeviceID, by caller: Caller) async throws {
    guard context.policy.deviceUnlock == .any else { throw MFARefusal.forbidden }
    try await change(username, deviceID, by: caller, .deviceDowngraded) { device in
      guard device.phoneNumber != nil else { throw MFARefusal.noPhoneNumber }
      device.method = .smsOTP
      // It was the key's use. The number has yet to be proved.
      device.lastUsed = nil
      device.publicKey = nil
      device.authMethod = nil
    }
  }

  private func change(
    _ username: Username, _ deviceID: DeviceID, by caller: Caller, _ event: AuditEvent,
    _ body: @escaping @Sendable (inout Device) throws -> Void
  ) async throws {
    let now = context.clock.now()
    let userID = try await context.store.write { [policy = context.policy] records in
      var (device, user) = try Self.ownDevice(
        deviceID, of: username, by: caller, policy: policy, in: records, at: now, mustBeBound: true,
        bindingSuffices: event == .deviceDowngraded)
      try body(&device)
      try records.save(device)
      try records.removeChallenges(of: device.id)
      try records.note(event, by: caller, account: user.username.key, ["device=\(deviceID.text)"], at: now)
      _ = try records.append(.methodChanged, to: user.id, concerning: deviceID.text, at: now)
      if event == .deviceDowngraded {
        try records.removeTrustedDevices(of: user.id, boundTo: device.binding)
        try records.endSessions(of: user.id, on: device.id, at: now)
      }
      return user.id
    }
    context.hub.notify(for: userID)
  }

  /// The caller's right to `deviceID` of `username`.
  ///
  /// - Parameters:
  ///   - mustBeBound: whether only the app instance that the device is bound to may do it.
  ///   - bindingSuffices: whether that instance may do it without a session. A debug build has no instance of its
  ///     own, so it needs the session all the same.
  private static func ownDevice(
    _ deviceID: DeviceID, of username: Username, by caller: Caller, policy: Policy, in records: any Records,
    at now: Timestamp, mustBeBound: Bool, bindingSuffices: Bool = false
  ) throws -> (device: Device, user: User) {
    let known = try records.device(deviceID)
    let isBound = known?.binding == caller.identity.binding
    if mustBeBound, let known, !isBound {
      throw MFARefusal.boundElsewhere(account: try records.user(known.userID)?.username.key ?? username.key)
    }
    if bindingSuffices, isBound, caller.identity.binding != .debugBuild {
      guard let known, known.removedAt == nil, let user = try records.user(known.userID), user.isNamed(username)
      else { throw MFARefusal.deviceNotEnrolled }
      guard user.lockedAt == nil else { throw MFARefusal.accountLocked(retryAfter: nil) }
      return (known, user)
    }
    let (_, user) = try records.freshSession(of: caller, maximumAge: policy.freshProof, at: now)
    guard user.isNamed(username) else { throw MFARefusal.forbidden }
    guard let known, known.removedAt == nil, known.userID == user.id else { throw MFARefusal.deviceNotEnrolled }
    return (known, user)
  }

  /// What the vault seals a device's number for.
  static func phonePlace(_ deviceID: DeviceID) -> String { "device:\(deviceID.text):phone" }
}

extension Enrolment.Application {
  /// Whether `known` is the device that came of it, by the same app instance.
  fileprivate func isDone(by known: Device, of user: User, for caller: Caller, _ vault: Vault) throws -> Bool {
    guard known.userID == user.id, known.removedAt == nil, user.lockedAt == nil,
      known.binding == caller.identity.binding, known.method == method, known.publicKey == publicKey,
      known.authMethod == authMethod, known.model == model
    else { return false }
    return try known.phoneNumber.map { try vault.openText($0, for: Enrolment.phonePlace(known.id)) }
      == phoneNumber?.text
  }
}

extension UserRecords where Self: AuditRecords {
  /// Why `caller` may not create another account, which stands in the history then; `nil` if they may. Debug builds
  /// share one identity, so they have no limit.
  fileprivate func refusalOfAccount(
    named username: Username, by caller: Caller, _ policy: Policy, at now: Timestamp
  ) throws -> MFARefusal? {
    let (binding, limit) = (caller.identity.binding, policy.mostAccountsOfInstance)
    guard binding != .debugBuild, try countUsers(createdBy: binding) >= limit else { return nil }
    let refusal = MFARefusal.tooManyAccounts(limit: limit)
    try note(.enrolmentRefused, by: caller, account: username.key, ["reason=\(refusal.cause)"], at: now)
    return refusal
  }
}

extension Device {
  fileprivate func isRemoved(from user: User) -> Bool { removedAt != nil && userID == user.id }
}

extension DeviceRecords
where Self: ChallengeRecords & TrustRecords & SessionRecords & NoticeRecords & CodeRecords {
  /// Leaves of `device` what tells its own app that it is gone, and takes everything that hangs on it. A link code that
  /// waits may be its own, so that goes too.
  func remove(_ device: Device, of user: User, at now: Timestamp) throws {
    var removed = device
    removed.removedAt = now
    removed.publicKey = nil
    removed.phoneNumber = nil
    try save(removed)
    try removeChallenges(of: device.id)
    try removeTrustedDevices(of: user.id, boundTo: device.binding)
    try Linking.void(.user, for: user, in: self)
    try endSessions(of: user.id, on: device.id, at: now)
  }
}

extension UnitOfWork {
  /// Removes `device` and everything that belongs to it.
  func remove(_ device: Device, of user: User) throws {
    try records.remove(device, of: user, at: now)
    wakeSockets(of: user.id)
  }
}
