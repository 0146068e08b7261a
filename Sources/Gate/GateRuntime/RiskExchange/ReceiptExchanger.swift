internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Cryptography
internal import Locking

/// Exchanges one receipt. The worker decides when, and stores the result.
public protocol ReceiptExchange: Sendable {
  func exchange(_ due: DueReceipt, with key: DeveloperKey, at now: Timestamp) async -> ExchangeOutcome
}

/// What an exchange came to, and what the stored receipt says about its times.
public struct ExchangeOutcome: Sendable, Hashable {
  public let judgement: Judgement
  /// Field 19 of the stored receipt.
  public let notBefore: Timestamp?
  /// Field 21 of the stored receipt; `nil` if the receipt is damaged.
  public let expiration: Timestamp?

  public init(_ judgement: Judgement, notBefore: Timestamp? = nil, expiration: Timestamp? = nil) {
    (self.judgement, self.notBefore, self.expiration) = (judgement, notBefore, expiration)
  }
}

/// Sends receipts to the data service and judges its answers.
public struct ReceiptExchanger: ReceiptExchange {
  private let transport: any ExchangeTransport
  private let judge: AnswerJudge
  private let clock: WallClock
  private let authorizations = LockedValue(Authorizations())

  /// - Parameter clock: Read again when the answer is there.
  public init(transport: any ExchangeTransport, judge: AnswerJudge, clock: WallClock = .system) {
    (self.transport, self.judge, self.clock) = (transport, judge, clock)
  }

  public func exchange(_ due: DueReceipt, with key: DeveloperKey, at now: Timestamp) async -> ExchangeOutcome {
    let receipt: Receipt
    switch judge.stored(due, at: now) {
    case .success(let stored): receipt = stored
    case .failure(let fault): return ExchangeOutcome(fault.judgement)
    }
    let judgement = await judgement(on: receipt, due, key, now)
    if case .unauthorized = judgement { authorizations.withLock { $0.forget(key.name) } }
    return ExchangeOutcome(judgement, notBefore: receipt.renewableFrom, expiration: receipt.expirationTime)
  }

  private func judgement(
    on receipt: Receipt, _ due: DueReceipt, _ key: DeveloperKey, _ now: Timestamp
  ) async -> Judgement {
    let authorization: String
    do throws(CryptographyError) {
      authorization = try authorizations.withLock { made throws(CryptographyError) in
        try made.current(of: key, at: now)
      }
    } catch {
      return .unusable(.noAnswer(reason: "the request cannot be signed: \(error)"))
    }
    do throws(ExchangeTransportError) {
      let answer = try await transport.send(ExchangeRequest(due, authorization: authorization))
      return judge.judge(answer, to: receipt, of: due.key, at: clock.now())
    } catch {
      switch error {
      case .noAnswer(let reason): return .unusable(.noAnswer(reason: reason))
      case .answerTooLong: return .unusable(.answerTooLong)
      case .malformedAnswer(let reason): return .unusable(.malformedAnswer(reason: reason))
      }
    }
  }
}
