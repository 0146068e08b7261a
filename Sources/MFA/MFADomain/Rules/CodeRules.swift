internal import ByteCoding
internal import Foundation

extension OneTimeCode {
  /// `count` digits, every combination as likely as the others.
  public static func makeDigits(_ count: Int, _ entropy: Entropy) -> String {
    let bound = (0..<count).reduce(UInt64(1)) { power, _ in power * 10 }
    let digits = String(entropy.number(below: bound))
    return String(repeating: "0", count: count - digits.count) + digits
  }
}

/// Where a code goes, as the counts have it.
struct CodeTarget: Sendable {
  let hash: [UInt8]

  /// - Parameter isConfirmed: whether a code that went there has come back. Messages to a number or an address before
  ///   that are counted apart, so that enrolling another person's number does not use up its owner's messages.
  init(_ text: String, isConfirmed: Bool, in vault: Vault) {
    hash = vault.hash(text, as: isConfirmed ? "target" : "unconfirmed target")
  }

  /// What stands for a target in the counts of who has none.
  init(standingIn hash: [UInt8]) { self.hash = hash }
}

/// What counts the messages that one caller has had sent, and those of all.
struct SendTally: Sendable {
  enum Kind: String { case address, key, debugBuilds }

  /// The caller's address and app instance, each with the id of what it will be counted by.
  let origins: [(kind: Kind, subject: String, id: UUID)]
  let allUsers: [UInt8]
  let noTarget: [UInt8]

  init(_ caller: Caller, _ context: DomainContext) {
    let vault = context.vault
    // All debug builds are one app instance, so they have no limit of one.
    let names: [(Kind, String)] = [
      (.address, NetworkPrefix.block(of: caller.identity.clientAddress)),
      (caller.identity.binding == .debugBuild ? .debugBuilds : .key, caller.identity.subject),
    ]
    origins = names.map { kind, name in
      let hash = vault.hash("\(kind):\(name)", as: "origin")
      return (kind, "sent:" + Hex.encode(hash.prefix(16)), context.entropy.uuid())
    }
    allUsers = vault.hash("everybody", as: "sent")
    noTarget = vault.hash("nobody", as: "sent")
  }
}

extension Policy {
  fileprivate func mostMessages(of kind: SendTally.Kind) -> Int? {
    switch kind {
    case .address: mostMessagesOfAddress
    case .key: mostMessagesOfInstance
    case .debugBuilds: nil
    }
  }
}

extension CodeRecords {
  /// When `most` codes within `period` leave room for another one: `nil` if they do at `now`.
  func room(
    below most: Int, within period: Duration, for subject: String, to target: [UInt8], _ channel: OneTimeCode.Channel,
    at now: Timestamp
  ) throws -> Timestamp? {
    try timeOfCode(at: max(1, most), for: subject, to: target, channel, since: now.advanced(by: period * -1))?
      .advanced(by: period)
  }

  /// When another code may go out; `nil` if it may at `now`.
  ///
  /// That is a minute after the last one for `subject`, and as soon as fewer than five went out within an hour for
  /// `subject`, to `target`, and to `account`, if one is given. A name without an account is refused at the same
  /// counts.
  func pace(
    of subject: String, to target: CodeTarget, account: [UInt8]?, _ channel: OneTimeCode.Channel, at now: Timestamp
  ) throws -> Timestamp? {
    let most = OneTimeCode.mostInAnHour
    let interval = try newestCode(for: subject, channel)?.createdAt.advanced(by: OneTimeCode.resendInterval)
    return [
      interval.flatMap { now < $0 ? $0 : nil },
      try room(below: most, within: .seconds(3600), for: subject, to: target.hash, channel, at: now),
      // No code has an empty subject. The row is looked for where there is no account, so that the answer takes as
      // long.
      try room(below: most, within: .seconds(3600), for: "", to: account ?? target.hash, channel, at: now),
    ].compactMap(\.self).max()
  }

  /// When the caller of `tally` may have `count` more messages sent, whatever their recipients; `nil` if at `now`.
  ///
  /// `policy` limits the messages within an hour of an address, of an app instance, and in all. Where `count` exceeds a
  /// limit, the hour has to be without any other message.
  func sendRoom(
    _ tally: SendTally, for count: Int = 1, _ channel: OneTimeCode.Channel, _ policy: Policy, at now: Timestamp
  ) throws -> Timestamp? {
    func room(below most: Int, for subject: String, to target: [UInt8]) throws -> Timestamp? {
      guard most > 0 else { return now.advanced(by: .seconds(3600)) }
      return try self.room(below: most - count + 1, within: .seconds(3600), for: subject, to: target, channel, at: now)
    }
    var ends = [try room(below: policy.mostMessages, for: "sent", to: tally.allUsers)]
    for origin in tally.origins {
      // One without a limit is looked up as well, so that the answer takes as long and a limit set later finds its
      // count.
      let limit = policy.mostMessages(of: origin.kind)
      let end = try room(below: limit ?? policy.mostMessages, for: origin.subject, to: tally.noTarget)
      if limit != nil { ends.append(end) }
    }
    return ends.compactMap(\.self).max()
  }

  /// Counts a message, by rows that stand among the codes and that no guess fits. One that is not sent, for want of an
  /// account, counts as well: else what is left would tell the two apart.
  ///
  /// - Parameter account: what the count of an account has for it, where messages to it have one of their own.
  func countSend(
    _ tally: SendTally, account: [UInt8]? = nil, _ channel: OneTimeCode.Channel, at now: Timestamp
  ) throws {
    for (index, origin) in tally.origins.enumerated() {
      try insert(
        OneTimeCode(
          id: origin.id, subject: origin.subject, channel: channel, hash: tally.noTarget,
          target: index == 0 ? tally.allUsers : account ?? Array(tally.noTarget.reversed()), createdAt: now,
          expiresAt: now, isClaimed: true, isSpent: true))
    }
  }
}

extension CodeRecords where Self: AuditRecords {
  /// The limits that a code has to wait for before it is sent, as a refusal that stands in the history; `nil` if none.
  ///
  /// - Parameter accountCount: what counts the codes to the account, if it is one that the caller belongs to.
  func refusalOfSending(
    to target: CodeTarget, for subject: String, account: String, accountCount: [UInt8]? = nil, _ tally: SendTally,
    _ channel: OneTimeCode.Channel, _ policy: Policy, by caller: Caller, at now: Timestamp
  ) throws -> MFARefusal? {
    let ends = [
      try sendRoom(tally, channel, policy, at: now),
      try pace(of: subject, to: target, account: accountCount, channel, at: now),
    ]
    guard let end = ends.compactMap(\.self).max() else { return nil }
    let refusal = MFARefusal.rateLimited(retryAfter: end.since(now))
    try note(
      .codeWithheld, by: caller, account: account, ["channel=\(channel.rawValue)", "reason=\(refusal.cause)"], at: now)
    return refusal
  }

  /// Records a code that goes out, or that none goes out because there is no recipient. Both are one entry, so that
  /// the time reveals nothing.
  func noteSend(
    _ channel: OneTimeCode.Channel, isSent: Bool, by caller: Caller, account: String, _ detail: [String] = [],
    at now: Timestamp
  ) throws {
    try note(
      isSent ? .codeSent : .codeWithheld, by: caller, account: account,
      ["channel=\(channel.rawValue)"] + (isSent ? detail : ["reason=no_target"]), at: now)
  }
}

extension CodeRecords where Self: AttemptLimiterRecords & AuditRecords {
  /// Counts a guess, compares it with the newest code, and acts on a right one.
  ///
  /// `match` returns the result of a right guess, and `nil` for a wrong one. `limitedSubject` is the subject that the
  /// guess is counted against, if it is not `subject`. All of it belongs in one transaction. A returned refusal has
  /// been counted and must be committed; only an error of `success` undoes everything.
  func judge<Match, Value>(
    _ channel: OneTimeCode.Channel, for subject: String, limiting limitedSubject: String? = nil, by caller: Caller,
    account: String, at now: Timestamp, _ match: (OneTimeCode) throws -> Match?, then success: (Match) throws -> Value
  ) throws -> Result<Value, MFARefusal> {
    let limited = limitedSubject ?? subject
    var limiter = try limiter(on: limited) ?? AttemptLimiter(at: now)
    if let refusal = limiter.refusal(at: now) {
      try note(
        .codeThrottled, by: caller, account: account, ["channel=\(channel.rawValue)", "reason=\(refusal.cause)"],
        at: now)
      return .failure(refusal)
    }
    limiter.count(at: now)
    func refuse(_ refusal: MFARefusal) throws -> Result<Value, MFARefusal> {
      try save(limiter, on: limited, account: account)
      try noteRefusedCode(refusal, channel, by: caller, account: account, at: now)
      return .failure(refusal)
    }
    guard var code = try newestCode(for: subject, channel) else { return try refuse(.codeInvalid(.noCode)) }
    guard !code.isSpent else { return try refuse(.codeInvalid(.used)) }
    guard code.failures < channel.mostFailures else { return try refuse(.codeInvalid(.exhausted)) }
    guard now < code.expiresAt else { return try refuse(.codeExpired) }
    code.failures += 1
    guard let found = try match(code) else {
      try update(code)
      return try refuse(.codeInvalid(.wrong))
    }
    code.isSpent = true
    try update(code)
    limiter.release(at: now)
    try save(limiter, on: limited, account: account)
    try note(.codeAccepted, by: caller, account: account, ["channel=\(channel.rawValue)"], at: now)
    return .success(try success(found))
  }

  func noteRefusedCode(
    _ refusal: MFARefusal, _ channel: OneTimeCode.Channel, by caller: Caller, account: String, at now: Timestamp
  ) throws {
    try note(
      .codeRefused, by: caller, account: account, ["channel=\(channel.rawValue)", "reason=\(refusal.cause)"], at: now)
  }
}
