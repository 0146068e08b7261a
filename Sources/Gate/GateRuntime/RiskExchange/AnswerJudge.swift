public import AppAttest
internal import AttestGate
public import ByteCoding
public import Cryptography

/// Decides what an answer of the data service means for the receipt that was sent. It has no input or output.
public struct AnswerJudge: Sendable {
  /// How far in the future Apple may have made a receipt, by this clock. A clock that is an hour off is an everyday
  /// fault, which does not make a genuine receipt useless.
  static let mostAhead = Duration.seconds(86400)

  /// How much older than the receipt that was sent an answer may be: two servers of Apple need not agree to the second.
  static let mostBehind = Duration.seconds(300)

  private let verifier: ReceiptVerifier

  /// - Parameter roots: The roots of receipts; `AppleRoots.appleRootG3` for real ones.
  public init(roots: [Certificate]) { verifier = ReceiptVerifier(roots: roots) }

  /// Reads the stored receipt of `due` and decides whether it can be sent at `now`.
  ///
  /// - Returns: The receipt, or the judgement of one that is not sent.
  func stored(_ due: DueReceipt, at now: Timestamp) -> Result<Receipt, Unsendable> {
    let receipt: Receipt
    do throws(ReceiptRejection) { receipt = try Receipt(due.receipt) } catch {
      return .failure(Unsendable(judgement: .damaged(error)))
    }
    guard receipt.publicKey == due.key.publicKey else {
      return .failure(
        Unsendable(
          judgement: .damaged(.publicKeyMismatch(expected: due.key.publicKey, found: receipt.publicKey))))
    }
    guard now <= receipt.expirationTime else { return .failure(Unsendable(judgement: .expired)) }
    return .success(receipt)
  }

  struct Unsendable: Error { let judgement: Judgement }

  /// Judges `answer` to the receipt `sent` of `key`.
  public func judge(
    _ answer: ExchangeAnswer, to sent: Receipt, of key: AttestedKey, at now: Timestamp
  ) -> Judgement {
    switch answer.status {
    case 200:
      do throws(ExchangeFault) { return .renewed(try renewed(answer.body, sent, key, now)) } catch {
        return .unusable(error)
      }
    case 304: return .notYet
    case 400: return .refused
    case 401: return .unauthorized(clockAhead: answer.date.map { now.since($0) })
    case 404: return .noData
    case 429, 500...599: return .busy(status: answer.status, retryAfter: answer.retryAfter)
    case 300...399: return .unusable(.redirect(answer.status))
    default: return .unusable(.unexpectedStatus(answer.status))
    }
  }

  private func renewed(
    _ body: [UInt8], _ sent: Receipt, _ key: AttestedKey, _ now: Timestamp
  ) throws(ExchangeFault) -> RenewedReceipt {
    guard body.count <= DataService.longestAnswer else { throw .answerTooLong }
    guard let bytes = Self.decoded(body), !bytes.isEmpty else { throw .notBase64 }
    let receipt: Receipt
    do throws(ReceiptRejection) {
      receipt = try Receipt(bytes)
      try verifier.verify(
        receipt,
        for: ReceiptExpectation(
          kind: .receipt, appID: key.appID, publicKey: key.publicKey, environment: key.environment), at: now)
    } catch {
      if case .unexpectedKind(let kind) = error { throw .receiptType(kind) }
      throw .receipt(error)
    }
    guard receipt.creationTime <= now.advanced(by: Self.mostAhead) else {
      throw .createdInFuture(receipt.creationTime)
    }
    guard receipt.creationTime >= sent.creationTime.advanced(by: .zero - Self.mostBehind) else {
      throw .olderThanPrevious(receipt.creationTime)
    }
    guard let text = receipt.riskMetric else { throw .metricMissing }
    let metric = try RiskMetric.value(of: text)
    guard let notBefore = receipt.renewableFrom else { throw .notBeforeMissing }
    return RenewedReceipt(
      receipt: bytes, risk: KeyRisk(metric: metric, at: receipt.creationTime), notBefore: notBefore,
      expiration: receipt.expirationTime)
  }

  /// Decodes base64 in the standard alphabet. A line break at the end is accepted.
  private static func decoded(_ body: [UInt8]) -> [UInt8]? {
    var text = body[...]
    while let last = text.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { text.removeLast() }
    return Base64.decode(String(decoding: text, as: UTF8.self))
  }
}
