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

  /// A code that may be sent, made before it is decided whether it will be.
  struct Draft: Sendable {
    let subject: String
    let code: String
    let id: UUID
    let hash: [UInt8]
    /// What stands for a number in the counts of who has none.
    let noTarget: [UInt8]
    let tally: SendTally
    let account: String
    let caller: Caller
  }

  func draft(for username: Username, _ caller: Caller) -> Draft {
    let code = OneTimeCode.makeDigits(6, context.entropy)
    let id = context.entropy.uuid()
    let subject = Self.subject(username, caller)
    return Draft(
      subject: subject, code: code, id: id, hash: Self.hash(code, of: id, in: context.vault),
      noTarget: context.vault.hash(subject, as: "no target"), tally: SendTally(caller, context),
      account: username.key, caller: caller)
  }

  /// An account as one app instance sees it. What another instance does about the same account has no effect on it.
  static func subject(_ username: Username, _ caller: Caller) -> String {
    switch caller.identity.binding {
    case .attestedKey(let hash): "sms:\(hash):\(username.key)"
    case .debugBuild: "sms::\(username.key)"
    }
  }

  static func hash(_ code: String, of id: UUID, in vault: Vault) -> [UInt8] {
    vault.hash(id.uuidString, code, as: "one-time code")
  }

  /// Sends the code that a sign-in begins with, unless one went out within the last minute or too many have in the
  /// hour: a sign-in tells nothing of that.
  func sendWithSignIn(
    _ draft: Draft, to device: Device?, in records: any Records, at now: Timestamp
  ) throws -> OutgoingMessage? {
    switch try send(draft, to: device, isClaimed: false, in: records, at: now) {
    case .success(let message): message
    case .failure: nil
    }
  }

  /// Asks for a code to be sent to the number that is enrolled, whatever number the caller names.
  ///
  /// A name that is not known, or that has no device bound to the caller, is answered alike and nothing is sent. The
  /// code that the start of the sign-in has sent within the last minute counts as the one asked for.
  public func request(for username: Username, by caller: Caller) async throws {
    let now = context.clock.now()
    let draft = draft(for: username, caller)
    let outcome = try await context.store.write { records -> Result<OutgoingMessage?, MFARefusal> in
      if var last = try records.newestCode(for: draft.subject, .sms), !last.isClaimed, last.isOpen(at: now),
        now < last.createdAt.advanced(by: OneTimeCode.resendInterval)
      {
        last.isClaimed = true
        try records.update(last)
        return .success(nil)
      }
      let owner = try owner(of: username, by: caller, in: records)
      // A user whom an operator has locked cannot sign in by a code.
      let device = owner?.user.lockedAt == nil ? owner?.device : nil
      return try send(draft, to: device, isClaimed: true, in: records, at: now)
    }
    if let message = try outcome.get() { context.outbox.send(message) }
  }

  /// A refusal leaves its line in the history, so it is to be committed.
  private func send(
    _ draft: Draft, to device: Device?, isClaimed: Bool, in records: any Records, at now: Timestamp
  ) throws -> Result<OutgoingMessage?, MFARefusal> {
    let number = try device.flatMap { try self.number(of: $0) }
    let target = number.map {
      CodeTarget($0.text, isConfirmed: device?.hasProvedNumber == true, in: context.vault)
    }
    // An app instance that has no device in the account does not count against it: or it could keep the owner's codes
    // back.
    let accountCount = device.map { context.vault.hash("sms:\($0.userID.uuidString)", as: "account") }
    let refusal = try records.refusalOfSending(
      to: target ?? CodeTarget(standingIn: draft.noTarget), for: draft.subject, account: draft.account,
      accountCount: accountCount, draft.tally, .sms, context.policy, by: draft.caller, at: now)
    if let refusal { return .failure(refusal) }
    try records.countSend(draft.tally, account: accountCount, .sms, at: now)
    try records.insert(
      OneTimeCode(
        id: draft.id, subject: draft.subject, channel: .sms, hash: number == nil ? draft.noTarget : draft.hash,
        target: target?.hash ?? draft.noTarget, createdAt: now, expiresAt: now.advanced(by: OneTimeCode.lifetime),
        isClaimed: isClaimed))
    try records.noteSend(
      .sms, isSent: number != nil, by: draft.caller, account: draft.account,
      device.map { ["device=\($0.id.text)"] } ?? [],
      at: now)
    return .success(
      number.map { OutgoingMessage(destination: .phone($0), code: draft.code, lifetime: OneTimeCode.lifetime) })
  }

  private func number(of device: Device) throws -> PhoneNumber? {
    try device.phoneNumber.map { try PhoneNumber(context.vault.openText($0, for: Enrolment.phonePlace(device.id))) }
  }

  /// The device of `user` that the caller has and whose number `code` went to; `nil` if its number has changed since.
  private func device(of user: User, by caller: Caller, reachedBy code: OneTimeCode?, in records: any Records) throws
    -> Device?
  {
    guard let code else { return nil }
    return try records.devices(of: user.id).first { device in
      guard device.binding == caller.identity.binding, let number = try self.number(of: device) else { return false }
      return [true, false].contains {
        constantTimeEqual(CodeTarget(number.text, isConfirmed: $0, in: context.vault).hash, code.target)
      }
    }
  }

  /// A session for the right code, of the device that it went to. A guess is counted before it is compared, in one
  /// step with the comparison: of any number of guesses at once, no more than the limit are looked at.
  public func verify(
    _ guess: String, for username: Username, trustToken: String?, by caller: Caller
  ) async throws -> SessionTokens {
    let now = context.clock.now()
    let subject = Self.subject(username, caller)
    let trust = trustToken.map { TrustProof(token: $0, binding: caller.identity.binding, in: context.vault) }
    let outcome = try await context.store.write {
      [context, sessions] records -> Result<(LoginSession, User), MFARefusal> in
      let owner = try owner(of: username, by: caller, in: records)
      if let owner, owner.user.lockedAt != nil {
        let refusal = MFARefusal.accountLocked(retryAfter: nil)
        try records.noteRefusedCode(refusal, .sms, by: caller, account: username.key, at: now)
        return .failure(refusal)
      }
      let asked = try records.newestCode(for: subject, .sms)
      return try records.judge(.sms, for: subject, by: caller, account: username.key, at: now) { code in
        guard constantTimeEqual(Self.hash(guess, of: code.id, in: context.vault), code.hash), let user = owner?.user
        else { return nil }
        return try self.device(of: user, by: caller, reachedBy: asked, in: records).map { (user: user, device: $0) }
      } then: { (owner: (user: User, device: Device)) in
        var (user, device) = owner
        device.lastUsed = now
        try records.save(device)
        // Trust spares the second factor to who has proved the first. Of a device with a key that is the key, and not
        // its number: who lost the key says so, and its trust ends with it.
        let scope = try records.scope(
          after: device.method == .smsOTP ? trust : nil, for: user, on: device, context.policy, by: caller, at: now)
        let session = sessions.begin(for: user, device: device, caller: caller, scope: scope, methods: ["sms"])
        try records.begin(session, of: user, by: caller, at: now)
        return (session, user)
      }
    }
    let (session, user) = try outcome.get()
    return try await sessions.tokens(for: session, of: user)
  }

  /// The account, and the device in it that is bound to the caller and has a number; `nil` too where no code signs in.
  ///
  /// Who is not known is looked for as long as who is, so that the time tells nothing.
  private func owner(
    of username: Username, by caller: Caller, in records: any Records
  ) throws -> (user: User, device: Device)? {
    let user = try records.user(named: username)
    let device = try records.devices(of: user?.id ?? .unknownUser).first {
      $0.binding == caller.identity.binding && $0.phoneNumber != nil
    }
    // A code is no biometry.
    guard let user, let device, context.policy.deviceUnlock == .any else { return nil }
    return (user, device)
  }
}

extension Device {
  /// Whether a code to the number has signed in. A key that signs in proves nothing of it.
  var hasProvedNumber: Bool { method == .smsOTP && lastUsed != nil }
}
