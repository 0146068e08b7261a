internal import ByteCoding
internal import Foundation

/// Codes to the number of a device.
public struct SMSCodes: Sendable {
  let context: DomainContext
  let sessions: Sessions

  public init(_ context: DomainContext) {
    self.context = context
    sessions = Sessions(context)
  }

  /// A code that was drawn before it is decided whether it is sent.
  struct PreparedCode: Sendable {
    let subject: String
    let code: String
    let id: UUID
    let hash: [UInt8]
    /// Stands for the number in the counts if there is none.
    let noTarget: [UInt8]
    let tally: SendTally
  }

  /// Draws a code for the account as `caller` sees it.
  func draft(for username: Username, _ caller: Caller) -> PreparedCode {
    let code = OneTimeCode.makeDigits(6, context.entropy)
    let id = context.entropy.uuid()
    let subject = Self.subject(username, caller)
    return PreparedCode(
      subject: subject, code: code, id: id, hash: Self.hash(code, of: id, in: context.vault),
      noTarget: context.vault.hash(subject, as: "no target"), tally: SendTally(caller, context))
  }

  /// The account as one app instance sees it. The codes of other instances for the same account do not affect it.
  static func subject(_ username: Username, _ caller: Caller) -> String {
    switch caller.identity.binding {
    case .attestedKey(let hash): "sms:\(hash):\(username.key)"
    case .debugBuild: "sms::\(username.key)"
    }
  }

  static func hash(_ code: String, of id: UUID, in vault: Vault) -> [UInt8] {
    vault.hash(id.uuidString, code, as: "one-time code")
  }

  /// Sends a code to the enrolled number, whatever number the caller names.
  ///
  /// An unknown name, and a name without a device that is bound to the caller, get the same response and no message.
  /// A code that the start of the sign-in has sent within the last minute counts as the requested one.
  ///
  /// - Throws: `.rateLimited` if a limit is reached.
  public func request(for username: Username, by caller: Caller) async throws {
    let draft = draft(for: username, caller)
    try await context.write(by: caller) { work in
      if var last = try work.records.newestCode(for: draft.subject, .sms), !last.isClaimed,
        last.isOpen(at: work.now), work.now < last.createdAt.advanced(by: OneTimeCode.resendInterval)
      {
        last.isClaimed = true
        return try work.records.update(last)
      }
      let (account, owner) = try work.owner(of: username)
      // A user whom an operator has locked cannot sign in by a code.
      try work.send(
        draft, to: owner?.user.lockedAt == nil ? owner?.device : nil, account: account, isClaimed: true,
        language: owner?.user.language)
    }
  }

  /// Begins a session by the right code, for the device that the code was sent to.
  ///
  /// A guess is counted before it is compared, in the same transaction: of any number of concurrent guesses, no more
  /// than the limit are compared.
  ///
  /// - Throws: `.accountLocked`; what `UnitOfWork.judge(_:_:then:)` refuses.
  public func verify(
    _ guess: String, for username: Username, trustToken: String?, by caller: Caller
  ) async throws -> SessionTokens {
    let subject = Self.subject(username, caller)
    // Separators alone are a guess too, and a wrong one.
    let guess = (try? CodeGuess(guess))?.text ?? ""
    let trust = trustToken.map { TrustProof(token: $0, binding: caller.identity.binding, in: context.vault) }
    let (session, user) = try await context.write(by: caller) { work in
      let (account, owner) = try work.owner(of: username)
      if let owner, owner.user.lockedAt != nil {
        throw try work.refuseCode(.accountLocked(retryAfter: nil), .sms, account: account)
      }
      let asked = try work.records.newestCode(for: subject, .sms)
      return try work.judge(CodeAttempt(.sms, for: subject, account: account)) { code in
        guard constantTimeEqual(Self.hash(guess, of: code.id, in: work.vault), code.hash), let user = owner?.user
        else { return nil }
        return try work.device(of: user, reachedBy: asked).map { (user: user, device: $0) }
      } then: { (owner: (user: User, device: Device)) in
        var (user, device) = owner
        device.lastUsed = work.now
        try work.records.save(device)
        // Trust lets a device skip the second factor after the first. The first factor of a device with a key is the
        // key, not the number: a user who signs in by the number has lost the key, and its trust ends with it.
        let scope = try work.scope(after: device.method == .smsOTP ? trust : nil, for: user, on: device)
        return (try work.beginSession(of: user, on: device, scope: scope, methods: ["sms"]), user)
      }
    }
    return try await sessions.tokens(for: session, of: user)
  }
}

extension UnitOfWork where Initiator == Caller {
  /// Sends the code that a sign-in begins with. A reached limit is recorded and not reported.
  func sendWithSignIn(
    _ draft: SMSCodes.PreparedCode, to device: Device?, account: String, language: String?
  ) throws {
    do {
      try send(draft, to: device, account: account, isClaimed: false, language: language)
    } catch is RecordedRefusal {}
  }

  /// Inserts the code of `draft` and queues its message.
  ///
  /// - Parameters:
  ///   - device: `nil` if there is no recipient. The code is counted and recorded alike, and not sent.
  ///   - account: the key of the account's name.
  ///   - language: the language of the account.
  /// - Throws: `RecordedRefusal` if a limit is reached.
  fileprivate func send(
    _ draft: SMSCodes.PreparedCode, to device: Device?, account: String, isClaimed: Bool, language: String?
  ) throws {
    let number = try device.flatMap { try self.number(of: $0) }
    let target = number.map { CodeTarget($0.text, isConfirmed: device?.hasProvedNumber == true, in: vault) }
    // An app instance without a device in the account does not use up the account's limit. It could otherwise block the
    // owner's codes.
    let accountCount = device.map { vault.hash("sms:\($0.userID.uuidString)", as: "account") }
    try admit(
      CodeSending(
        channel: .sms, subject: draft.subject, target: target ?? CodeTarget(standingIn: draft.noTarget),
        account: account, sharedCount: accountCount, tally: draft.tally))
    try records.insert(
      OneTimeCode(
        id: draft.id, subject: draft.subject, channel: .sms, hash: number == nil ? draft.noTarget : draft.hash,
        target: target?.hash ?? draft.noTarget, createdAt: now, expiresAt: now.advanced(by: OneTimeCode.lifetime),
        isClaimed: isClaimed))
    try noteSend(
      .sms, isSent: number != nil, account: account, device.map { ["device=\($0.id.text)"] } ?? [])
    guard let number else { return }
    send(
      OutgoingMessage(
        destination: .phone(number), code: draft.code, lifetime: OneTimeCode.lifetime,
        languages: caller.languages.followed(by: Languages(tag: language))))
  }

  private func number(of device: Device) throws -> PhoneNumber? {
    try device.phoneNumber.map { try PhoneNumber(vault.openText($0, for: Enrolment.phonePlace(device.id))) }
  }

  /// The device of `user` that is bound to the caller and whose number `code` was sent to; `nil` if the number has
  /// changed since.
  fileprivate func device(of user: User, reachedBy code: OneTimeCode?) throws -> Device? {
    guard let code else { return nil }
    return try records.devices(of: user.id).first { device in
      guard device.binding == caller.identity.binding, let number = try self.number(of: device) else { return false }
      return [true, false].contains {
        constantTimeEqual(CodeTarget(number.text, isConfirmed: $0, in: vault).hash, code.target)
      }
    }
  }

  /// The key of the account, and its user with the device that is bound to the caller and has a number. The user is
  /// `nil` without such a device, and where codes do not sign in.
  ///
  /// The lookups are the same for an unknown name, so that the time reveals nothing.
  fileprivate func owner(
    of username: Username
  ) throws -> (account: String, owner: (user: User, device: Device)?) {
    let user = try records.user(named: username)
    let account = user?.username.key ?? username.key
    let device = try records.devices(of: user?.id ?? .unknownUser).first {
      $0.binding == caller.identity.binding && $0.phoneNumber != nil
    }
    // A code does not prove biometrics.
    guard let user, let device, policy.deviceUnlock == .any else { return (account, nil) }
    return (account, (user: user, device: device))
  }
}

extension Device {
  /// Whether a code to the number has signed in. A sign-in by a key proves nothing about the number.
  var hasProvedNumber: Bool { method == .smsOTP && lastUsed != nil }
}
