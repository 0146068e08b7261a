internal import ByteCoding

extension OneTimeCode {
  /// `count` digits, every combination as likely as the others.
  public static func makeDigits(_ count: Int, _ entropy: Entropy) -> String {
    let bound = (0..<count).reduce(UInt64(1)) { power, _ in power * 10 }
    let digits = String(entropy.number(below: bound))
    return String(repeating: "0", count: count - digits.count) + digits
  }
}

extension CodeRecords {
  /// Whether another code may go out now.
  ///
  /// - Throws: `.rateLimited` within a minute of the last one, and after five within an hour to the account or the target.
  func checkPace(
    of subject: String, to target: [UInt8], _ channel: OneTimeCode.Channel, at now: Timestamp
  ) throws {
    if let last = try newestCode(for: subject, channel) {
      let next = last.createdAt.advanced(by: OneTimeCode.resendInterval)
      if now < next { throw Refusal.rateLimited(retryAfter: next.since(now)) }
    }
    let hourAgo = now.advanced(by: .seconds(-3600))
    if try countCodes(for: subject, to: target, channel, since: hourAgo) >= OneTimeCode.mostInAnHour {
      throw Refusal.rateLimited(retryAfter: .seconds(3600))
    }
  }
}

extension CodeRecords where Self: BrakeRecords & AuditRecords {
  /// Counts a guess, compares it with the newest code, and does what follows on a right one.
  ///
  /// `braked` is whom the guess is counted against, if that is not `subject`. All of it belongs in one transaction. What comes back refused has been counted and is to be committed; only what
  /// `success` throws undoes everything.
  func judge<Value>(
    _ channel: OneTimeCode.Channel, for subject: String, braking braked: String? = nil, by caller: Caller,
    account: String, at now: Timestamp, _ isRight: (OneTimeCode) -> Bool, then success: () throws -> Value
  ) throws -> Result<Value, Refusal> {
    let brakedSubject = braked ?? subject
    var brake = try brake(on: brakedSubject) ?? Brake(at: now)
    if let refusal = brake.refusal(at: now) {
      try note(.codeBraked, by: caller, account: account, ["channel=\(channel.rawValue)"], at: now)
      return .failure(refusal)
    }
    brake.count(at: now)
    guard var code = try newestCode(for: subject, channel), !code.isSpent, code.failures < channel.mostFailures
    else {
      return try refuse(.codeInvalid, brake, brakedSubject, channel, by: caller, account: account, at: now)
    }
    guard now < code.expiresAt else {
      return try refuse(.codeExpired, brake, brakedSubject, channel, by: caller, account: account, at: now)
    }
    code.failures += 1
    guard isRight(code) else {
      try update(code)
      return try refuse(.codeInvalid, brake, brakedSubject, channel, by: caller, account: account, at: now)
    }
    code.isSpent = true
    try update(code)
    brake.release(at: now)
    try save(brake, on: brakedSubject, account: account)
    try note(.codeAccepted, by: caller, account: account, ["channel=\(channel.rawValue)"], at: now)
    return .success(try success())
  }

  private func refuse<Value>(
    _ refusal: Refusal, _ brake: Brake, _ subject: String, _ channel: OneTimeCode.Channel, by caller: Caller,
    account: String, at now: Timestamp
  ) throws -> Result<Value, Refusal> {
    try save(brake, on: subject, account: account)
    try note(.codeRefused, by: caller, account: account, ["channel=\(channel.rawValue)"], at: now)
    return .failure(refusal)
  }
}
