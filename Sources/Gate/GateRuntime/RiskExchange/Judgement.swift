public import AppAttest
public import AttestGate
public import ByteCoding

/// What an exchange came to. `code` names it in logs and metrics.
public enum Judgement: Sendable, Hashable {
  /// 200 with a receipt that passes every rule.
  case renewed(RenewedReceipt)
  /// 304: the service has nothing newer before the receipt's "not before".
  case notYet
  /// 400: the request or the receipt is malformed.
  case refused
  /// 401: the service refuses the authorization. `clockAhead` is how far this clock is ahead of the service's.
  case unauthorized(clockAhead: Duration?)
  /// 404: the service has no data for this receipt.
  case noData
  /// 429 or 5xx.
  case busy(status: Int, retryAfter: Duration?)
  /// No answer, or one that breaks a rule.
  case unusable(ExchangeFault)
  /// Not sent: the stored receipt has expired.
  case expired
  /// Not sent: the stored bytes are no receipt of the key.
  case damaged(ReceiptRejection)

  /// The stable word for metrics.
  public var code: String { result.rawValue }

  var result: ExchangeResult {
    switch self {
    case .renewed: .renewed
    case .notYet: .notYet
    case .refused: .refused
    case .unauthorized: .unauthorized
    case .noData: .noData
    case .busy: .busy
    case .unusable(let fault): fault.isAbsence ? .noAnswer : .unusable
    case .expired: .expired
    case .damaged: .damaged
    }
  }
}

/// The results of exchanges, as metrics count them.
public enum ExchangeResult: String, Sendable, Hashable, CaseIterable {
  case renewed
  case notYet = "not_yet"
  case refused
  case unauthorized
  case noData = "no_data"
  case busy
  case noAnswer = "no_answer"
  case unusable
  case expired
  case damaged
}

/// A verified receipt that replaces the stored one.
public struct RenewedReceipt: Sendable, Hashable {
  public let receipt: [UInt8]
  public let risk: KeyRisk
  /// The time before which the service has nothing newer (field 19), as the receipt says it.
  public let notBefore: Timestamp
  public let expiration: Timestamp

  public init(receipt: [UInt8], risk: KeyRisk, notBefore: Timestamp, expiration: Timestamp) {
    (self.receipt, self.risk, self.notBefore, self.expiration) = (receipt, risk, notBefore, expiration)
  }
}

/// Why an answer cannot be used: the rule that it breaks.
public enum ExchangeFault: Error, Sendable, Hashable {
  /// The service was not reached, or did not answer in time.
  case noAnswer(reason: String)
  /// The answer is longer than `DataService.longestAnswer`.
  case answerTooLong
  /// The answer is not HTTP.
  case malformedAnswer(reason: String)
  /// A status 300 to 399 other than 304.
  case redirect(Int)
  /// Any other status: 204 or 206, for example.
  case unexpectedStatus(Int)
  /// The body of a 200 is not base64.
  case notBase64
  /// The new receipt breaks a rule of receipts: app, key, environment, signature, for example.
  case receipt(ReceiptRejection)
  /// The new receipt is not of the type `RECEIPT`.
  case receiptType(Receipt.Kind)
  case metricMissing
  /// Field 17 is not a decimal number.
  case metricMalformed
  case metricNegative
  case metricTooLarge
  case notBeforeMissing
  /// Apple made the receipt more than a day from now, by this clock.
  case createdInFuture(Timestamp)
  /// The new receipt is older than the one that was sent.
  case olderThanPrevious(Timestamp)

  /// The stable word in logs.
  public var code: String {
    switch self {
    case .noAnswer: "no_answer"
    case .answerTooLong: "answer_too_long"
    case .malformedAnswer: "malformed_answer"
    case .redirect: "redirect"
    case .unexpectedStatus: "unexpected_status"
    case .notBase64: "not_base64"
    case .receipt(let rejection): "receipt_\(rejection.step)"
    case .receiptType: "receipt_type"
    case .metricMissing: "metric_missing"
    case .metricMalformed: "metric_malformed"
    case .metricNegative: "metric_negative"
    case .metricTooLarge: "metric_too_large"
    case .notBeforeMissing: "not_before_missing"
    case .createdInFuture: "created_in_future"
    case .olderThanPrevious: "older_than_previous"
    }
  }

  /// Whether there was no answer at all.
  var isAbsence: Bool { if case .noAnswer = self { true } else { false } }
}

extension ExchangeFault: CustomStringConvertible {
  /// The reason as a sentence, for logs. It quotes no text of the answer.
  public var description: String {
    switch self {
    case .noAnswer(let reason), .malformedAnswer(let reason): reason
    case .answerTooLong: "the answer is longer than \(DataService.longestAnswer) bytes"
    case .redirect(let status): "status \(status): the service redirects, which is not followed"
    case .unexpectedStatus(let status): "status \(status)"
    case .notBase64: "the answer is not base64"
    case .receipt(let rejection): rejection.description
    case .receiptType(let kind): "the new receipt is of the type \(kind.rawValue), not RECEIPT"
    case .metricMissing: "the new receipt has no risk metric (field 17)"
    case .metricMalformed: "the risk metric (field 17) is not a decimal number"
    case .metricNegative: "the risk metric (field 17) is negative"
    case .metricTooLarge: "the risk metric (field 17) is greater than \(RiskMetric.greatest)"
    case .notBeforeMissing: "the new receipt has no time from which it can be exchanged (field 19)"
    case .createdInFuture(let instant): "the new receipt was made at \(instant), which is in the future"
    case .olderThanPrevious(let instant): "the new receipt was made at \(instant), before the one that was sent"
    }
  }
}
