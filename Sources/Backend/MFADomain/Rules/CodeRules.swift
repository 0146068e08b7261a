internal import ByteCoding
internal import Foundation

extension OneTimeCode {
  /// Returns `count` digits; all combinations are equally likely.
  public static func makeDigits(_ count: Int, _ entropy: Entropy) -> String {
    let bound = (0..<count).reduce(UInt64(1)) { power, _ in power * 10 }
    let digits = String(entropy.number(below: bound))
    return String(repeating: "0", count: count - digits.count) + digits
  }
}

/// The recipient of a code, as the counts identify it.
struct CodeTarget: Sendable {
  let hash: [UInt8]

  /// - Parameter isConfirmed: Whether a code that was sent there has come back. Messages before that are counted
  ///   separately, so that enrolling another person's number does not use up its owner's messages.
  init(_ text: String, isConfirmed: Bool, in vault: Vault) {
    hash = vault.hash(text, as: isConfirmed ? "target" : "unconfirmed target")
  }

  /// A placeholder in the counts, for a code without a recipient.
  init(standingIn hash: [UInt8]) { self.hash = hash }
}

/// The counters of messages: of one caller, and of all callers together.
struct SendTally: Sendable {
  enum Kind: String { case address, key, debugBuilds }

  /// The caller's address and app instance, each with the id of the row that will count it.
  let origins: [(kind: Kind, subject: String, id: UUID)]
  let allUsers: [UInt8]
  let noTarget: [UInt8]

  init(_ caller: Caller, _ context: DomainContext) {
    let vault = context.vault
    // All debug builds are one app instance, so they have no limit per instance.
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

/// A code that is about to be sent, as the limits see it.
struct CodeSending: Sendable {
  let channel: OneTimeCode.Channel
  let subject: String
  let target: CodeTarget
  /// The key of the account's name.
  let account: String
  /// A further counter, which all app instances share: of the account, for codes by SMS, `nil` if the caller does not
  /// belong to it; of the mailbox, for codes by e-mail.
  var sharedCount: [UInt8]?
  let tally: SendTally
}

extension UnitOfWork {
  /// When fewer than `most` codes of the last hour leave room for another one; `nil` if they do now.
  func room(
    below most: Int, for subject: String, to target: [UInt8], _ channel: OneTimeCode.Channel
  ) throws -> Timestamp? {
    let hour = Duration.seconds(3600)
    return try records.timeOfCode(
      at: max(1, most), for: subject, to: target, channel, since: now.advanced(by: hour * -1))?
      .advanced(by: hour)
  }

  /// When another code of this kind may be sent; `nil` if it may be sent now.
  ///
  /// That is a minute after the last code for the subject, and as soon as fewer than five were sent within an hour for
  /// the subject, to the target, and at the shared counter, if there is one. A name without an account is refused at
  /// the same counts.
  private func earliestNextSend(of sending: CodeSending) throws -> Timestamp? {
    let (most, target) = (OneTimeCode.mostInAnHour, sending.target.hash)
    let interval = try records.newestCode(for: sending.subject, sending.channel)?.createdAt
      .advanced(by: OneTimeCode.resendInterval)
    return [
      interval.flatMap { now < $0 ? $0 : nil },
      try room(below: most, for: sending.subject, to: target, sending.channel),
      // No code has an empty subject. Without an account the row is looked up as well, so that the response takes the
      // same time.
      try room(below: most, for: "", to: sending.sharedCount ?? target, sending.channel),
    ].compactMap(\.self).max()
  }

  /// When the caller of `tally` may send `count` more messages to any recipients; `nil` if now.
  ///
  /// The policy limits the messages within an hour of an address, of an app instance, and in all. Where `count` exceeds
  /// a limit, the hour must be without any other message.
  func sendRoom(_ tally: SendTally, for count: Int = 1, _ channel: OneTimeCode.Channel) throws -> Timestamp? {
    func room(below most: Int, for subject: String, to target: [UInt8]) throws -> Timestamp? {
      guard most > 0 else { return now.advanced(by: .seconds(3600)) }
      return try self.room(below: most - count + 1, for: subject, to: target, channel)
    }
    var ends = [try room(below: policy.mostMessages, for: "sent", to: tally.allUsers)]
    for origin in tally.origins {
      // An origin without a limit is looked up as well, so that the response takes the same time and a limit that is
      // set later finds its count.
      let limit = policy.mostMessages(of: origin.kind)
      let end = try room(below: limit ?? policy.mostMessages, for: origin.subject, to: tally.noTarget)
      if limit != nil { ends.append(end) }
    }
    return ends.compactMap(\.self).max()
  }

  /// Counts a message by rows among the codes that no guess fits.
  ///
  /// A message that is not sent because there is no account counts as well. Otherwise the remaining number would reveal
  /// the difference.
  ///
  /// - Parameter shared: the shared counter, for messages that have one.
  func countSend(_ tally: SendTally, shared: [UInt8]? = nil, _ channel: OneTimeCode.Channel) throws {
    for (index, origin) in tally.origins.enumerated() {
      try records.insert(
        OneTimeCode(
          id: origin.id, subject: origin.subject, channel: channel, hash: tally.noTarget,
          target: index == 0 ? tally.allUsers : shared ?? Array(tally.noTarget.reversed()), createdAt: now,
          expiresAt: now, isClaimed: true, isSpent: true))
    }
  }

  /// Checks the limits for a code, and counts it.
  ///
  /// - Throws: `RecordedRefusal` with `.rateLimited` if a limit is reached.
  func admit(_ sending: CodeSending) throws {
    let ends = [try sendRoom(sending.tally, sending.channel), try earliestNextSend(of: sending)]
    if let end = ends.compactMap(\.self).max() {
      let refusal = MFARefusal.rateLimited(retryAfter: end.since(now))
      try note(
        .codeWithheld, account: sending.account, ["channel=\(sending.channel.rawValue)", "reason=\(refusal.cause)"])
      throw RecordedRefusal(refusal)
    }
    try countSend(sending.tally, shared: sending.sharedCount, sending.channel)
  }

  /// Records a code that is sent, or that none is sent because there is no recipient. Both are one entry, so that the
  /// time reveals nothing.
  func noteSend(
    _ channel: OneTimeCode.Channel, isSent: Bool, account: String, _ detail: [String] = []
  ) throws {
    try note(
      isSent ? .codeSent : .codeWithheld, account: account,
      ["channel=\(channel.rawValue)"] + (isSent ? detail : ["reason=no_target"]))
  }
}

/// An attempt to guess a code, with the limits that it counts against.
struct CodeAttempt: Sendable {
  let channel: OneTimeCode.Channel
  /// The subject of the code.
  let subject: String
  /// The key of the account's name.
  let account: String
  /// The subject of the attempt limit.
  let limitedSubject: String

  /// - Parameter limitedSubject: `nil` for `subject`.
  init(_ channel: OneTimeCode.Channel, for subject: String, account: String, limitedSubject: String? = nil) {
    self.channel = channel
    self.subject = subject
    self.account = account
    self.limitedSubject = limitedSubject ?? subject
  }
}

extension UnitOfWork {
  /// Returns the attempt limiter of `subject`; one without failures if there is none.
  ///
  /// One that a clock that ran ahead has written is bounded first, and saved. Otherwise it would refuse guesses until
  /// the times of that clock are reached.
  func attemptLimiter(on subject: String, account: String) throws -> AttemptLimiter {
    guard let limiter = try records.limiter(on: subject) else { return AttemptLimiter(at: now) }
    guard let bounded = limiter.bounded(to: now) else { return limiter }
    try records.save(bounded, on: subject, account: account)
    return bounded
  }

  /// Counts a guess, compares it with the newest code, and acts on a right one.
  ///
  /// - Parameters:
  ///   - match: returns the result of a right guess, and `nil` for a wrong one.
  ///   - success: acts on a right guess. Its error rolls everything back.
  /// - Throws: `RecordedRefusal` for a guess that is wrong or not compared.
  func judge<Match, Value>(
    _ attempt: CodeAttempt, _ match: (OneTimeCode) throws -> Match?, then success: (Match) throws -> Value
  ) throws -> Value {
    let (channel, account) = (attempt.channel, attempt.account)
    var limiter = try attemptLimiter(on: attempt.limitedSubject, account: account)
    if let refusal = limiter.refusal(at: now) {
      try note(.codeThrottled, account: account, ["channel=\(channel.rawValue)", "reason=\(refusal.cause)"])
      throw RecordedRefusal(refusal)
    }
    limiter.count(at: now)
    func refuse(_ refusal: MFARefusal) throws -> RecordedRefusal {
      try records.save(limiter, on: attempt.limitedSubject, account: account)
      return try refuseCode(refusal, channel, account: account)
    }
    guard var code = try records.newestCode(for: attempt.subject, channel) else {
      throw try refuse(.codeInvalid(.noCode))
    }
    guard !code.isSpent else { throw try refuse(.codeInvalid(.used)) }
    guard code.failures < channel.mostFailures else { throw try refuse(.codeInvalid(.exhausted)) }
    guard now < code.expiresAt else { throw try refuse(.codeExpired) }
    code.failures += 1
    guard let found = try match(code) else {
      try records.update(code)
      throw try refuse(.codeInvalid(.wrong))
    }
    code.isSpent = true
    try records.update(code)
    limiter.release(at: now)
    try records.save(limiter, on: attempt.limitedSubject, account: account)
    try note(.codeAccepted, account: account, ["channel=\(channel.rawValue)"])
    return try success(found)
  }

  /// Records that a code was refused, and returns the refusal to throw.
  func refuseCode(
    _ refusal: MFARefusal, _ channel: OneTimeCode.Channel, account: String
  ) throws -> RecordedRefusal {
    try note(.codeRefused, account: account, ["channel=\(channel.rawValue)", "reason=\(refusal.cause)"])
    return RecordedRefusal(refusal)
  }
}
