public import ByteCoding
internal import OneTimePasswords

extension TOTPParameters {
  /// The step of `instant` (RFC 6238, section 4.2); 0 before the epoch.
  public func step(at instant: Timestamp) -> Int64 { max(0, instant.seconds) / Int64(period) }

  /// The code of `step`, which is not negative, with its leading zeros (RFC 4226, section 5.3).
  public func code(_ secret: [UInt8], step: Int64) -> String {
    password.code(secret: secret, counter: UInt64(clamping: step))
  }

  /// Returns the step whose code is `guess`: that of `instant`, or one to either side, but none up to `lastStep`.
  ///
  /// All three are always compared, so that the time does not reveal the step.
  func matchingStep(_ guess: String, _ secret: [UInt8], at instant: Timestamp, after lastStep: Int64) -> Int64? {
    let current = step(at: instant)
    var found: Int64?
    for candidate in max(0, current - 1)...current + 1 {
      let isEqual = constantTimeEqual(Array(code(secret, step: candidate).utf8), Array(guess.utf8))
      if isEqual, candidate > lastStep { found = candidate }
    }
    return found
  }

  /// How many bytes a secret has: as many as the hash, which is 160 bits at least.
  public var secretLength: Int { algorithm.hashLength }
}
