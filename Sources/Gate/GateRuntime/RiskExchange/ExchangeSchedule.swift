internal import AppAttest
public import AttestGate
public import ByteCoding

/// Decides when a receipt is due again after an exchange. Randomness is an argument: a number from 0 to 1.
public enum ExchangeSchedule {
  /// The earliest next exchange after an answer. It also bounds what a clock that is ahead by an hour causes: the gate
  /// asks too early, gets 304, and asks once an hour.
  static let soonest = Duration.seconds(3600)
  /// The latest next exchange, so that a "not before" in ten years does not end the exchanges of a key.
  static let latest = Duration.seconds(30 * 86400)
  /// The pauses after the first 404, and after each further one. A later attestation on the device makes the same
  /// receipt work again.
  static let noData = (first: Duration.seconds(7 * 86400), further: latest)
  /// Receipts that become due at one time are spread over this time.
  static let spread = Duration.seconds(3600)
  /// The bounds of full jitter after 429, 5xx and no answer: the first, and the greatest.
  static let backoff = (first: Duration.seconds(60), greatest: Duration.seconds(6 * 3600))
  /// The greatest `Retry-After` that is honoured for one receipt.
  static let longestRetryAfter = Duration.seconds(86400)
  /// The bounds after an answer that breaks a rule. It comes from a fault of the service or of a machine on the way,
  /// which an hour seldom changes.
  static let unusable = (first: Duration.seconds(2 * 3600), greatest: Duration.seconds(86400))

  /// Returns what to store after `judgement` about `due`, whose stored receipt is `receipt` (`nil` if that is damaged);
  /// `nil` to leave the row as it is, which stays due: a 401 says nothing about the receipt.
  public static func settlement(
    after judgement: Judgement, of due: DueReceipt, receipt: (notBefore: Timestamp?, expiration: Timestamp)?,
    at now: Timestamp, random: Double
  ) -> ReceiptSettlement? {
    let further = min(max(0, due.failures), 1 << 20) + 1
    func later(_ wait: Duration) -> Timestamp { bounded(now.advanced(by: wait), receipt?.expiration) }
    switch judgement {
    case .renewed(let renewed):
      return ReceiptSettlement(
        receipt: renewed.receipt, risk: renewed.risk, next: next(renewed.notBefore, renewed.expiration, now, random))
    case .notYet:
      guard let receipt else { return nil }
      let notBefore = receipt.notBefore ?? now.advanced(by: .seconds(86400))
      return ReceiptSettlement(next: next(notBefore, receipt.expiration, now, random))
    case .refused, .damaged:
      // Not repeated soon: the same bytes get the same answer. Repeated after a month, because a fault of Apple's or of
      // this program may have been repaired, and a key has no other receipt. That is two requests more at most, since a
      // receipt is valid for 90 days.
      return ReceiptSettlement(next: later(latest), failures: further)
    case .noData:
      return ReceiptSettlement(
        next: later((due.failures == 0 ? noData.first : noData.further) + spread * random), failures: further)
    case .busy(_, let retryAfter):
      let asked = min(max(retryAfter ?? .zero, .zero), longestRetryAfter)
      return ReceiptSettlement(
        next: later(max(asked, jitter(backoff, due.failures, random))), failures: further)
    case .unusable(let fault):
      return ReceiptSettlement(
        next: later(jitter(fault.isAbsence ? backoff : unusable, due.failures, random)), failures: further)
    case .expired: return ReceiptSettlement(next: nil, failures: due.failures)
    case .unauthorized: return nil
    }
  }

  /// Full jitter: anything from now to the bound, which doubles with each failure.
  static func jitter(_ bounds: (first: Duration, greatest: Duration), _ failures: Int, _ random: Double) -> Duration {
    let doublings = min(max(0, failures), 16)
    return min(bounds.first * (1 << doublings), bounds.greatest) * random
  }

  private static func next(
    _ notBefore: Timestamp, _ expiration: Timestamp, _ now: Timestamp, _ random: Double
  ) -> Timestamp {
    let earliest = max(notBefore, now.advanced(by: soonest))
    return bounded(min(earliest.advanced(by: spread * random), now.advanced(by: latest)), expiration)
  }

  /// A receipt is never sent after its expiration. It is due once more right after it, which makes its metric outdated.
  private static func bounded(_ next: Timestamp, _ expiration: Timestamp?) -> Timestamp {
    expiration.map { min(next, $0.advanced(by: .seconds(1))) } ?? next
  }
}
