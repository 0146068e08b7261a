public import ByteCoding
internal import Cryptography

/// Decides when to order a certificate. A value: each event of the world makes a new plan.
public struct RenewalPlan: Sendable, Hashable {
  /// The next thing to do.
  public enum Action: Sendable, Hashable {
    /// Order a certificate now.
    case order
    /// Ask the server when it wants the certificate to be renewed.
    case askForRenewalInformation
    /// Nothing before this instant.
    case wait(until: Timestamp)
  }

  /// The last failed attempt to order.
  public struct Failure: Sendable, Hashable {
    public var code: String
    public var text: String
    public var at: Timestamp

    /// - Parameter text: Kept on one line, without control characters, at most 1,500 characters.
    public init(code: String, text: String, at: Timestamp) {
      // An error has up to three parts that the server wrote.
      (self.code, self.at) = (ServerText.bounded(code), at)
      self.text = ServerText.bounded(text, to: 3 * ServerText.longest)
    }
  }

  /// The server's recommendation for the current certificate; `nil` if there is none.
  public private(set) var window: RenewalWindow?
  /// When to ask the server for its recommendation; `nil` if it never gives one.
  public private(set) var nextQuestion: Timestamp?
  /// The failed attempts since the last success.
  public private(set) var failures = 0
  public private(set) var lastFailure: Failure?
  /// No attempt before this instant.
  public private(set) var notBefore: Timestamp?

  /// A plan without any experience.
  public init() {}

  // MARK: Decision

  /// Returns what to do at `now`.
  ///
  /// - Parameters:
  ///   - certificate: The current certificate; `nil` if there is none, or if it is for other names.
  ///   - offersInformation: Whether the server gives recommendations (RFC 9773).
  public func action(at now: Timestamp, for certificate: Validity?, offersInformation: Bool) -> Action {
    let notBefore = Self.plausible(notBefore, at: now, within: Self.longestWait)
    let nextQuestion = Self.plausible(nextQuestion, at: now, within: Self.longestQuestionPause)
    guard let certificate else { return notBefore.map { $0 > now ? .wait(until: $0) : .order } ?? .order }
    if offersInformation, nextQuestion.map({ $0 <= now }) ?? true { return .askForRenewalInformation }
    let due = max(renewal(of: certificate), notBefore ?? certificate.notBefore)
    if due <= now { return .order }
    return .wait(until: offersInformation ? min(due, nextQuestion ?? due) : due)
  }

  /// An instant that no plan of `now` can have was written while the clock of the machine was wrong. To wait for it
  /// would let the certificate end.
  private static func plausible(_ instant: Timestamp?, at now: Timestamp, within longest: Duration) -> Timestamp? {
    instant.flatMap { $0 <= now.advanced(by: longest) ? $0 : nil }
  }

  /// The highest count that is read, so that a damaged document cannot make the next failure overflow.
  private static let mostFailures = 1_000_000

  /// The longest `Retry-After` that is respected, and the longest delay of a backoff.
  private static let longestWait = RetryAfter.longest + .seconds(86_400)
  private static let longestQuestionPause = Duration.seconds(86_400)
  /// The longest time between two orders that succeed, and the longest time for which one order is continued.
  static let longestOrderPause = Duration.seconds(86_400)

  /// When `certificate` is renewed: at a moment of the server's window; without one, shortly before two thirds of the
  /// lifetime, or before half of it if it is under ten days. A window cannot postpone it to the last tenth of the lifetime.
  ///
  /// The moment depends on the certificate alone. All gates that share it agree, and different certificates of many
  /// gates are not renewed at once.
  public func renewal(of certificate: Validity) -> Timestamp {
    let lifetime = certificate.notAfter.since(certificate.notBefore)
    if let window {
      let moment = window.start.advanced(by: window.end.since(window.start) * certificate.jitter)
      return min(moment, certificate.notBefore.advanced(by: lifetime * 0.9))
    }
    // The rest of a short lifetime has to be long enough to repair what makes orders fail.
    let part = lifetime < Self.shortLifetime ? 0.5 : 2.0 / 3
    return certificate.notBefore.advanced(by: lifetime * (part - 0.05 * certificate.jitter))
  }

  private static let shortLifetime = Duration.seconds(10 * 86_400)

  /// The period of a certificate, and a number that is different for each certificate.
  public struct Validity: Sendable, Hashable {
    public let notBefore: Timestamp
    public let notAfter: Timestamp
    /// 0 to 1.
    public let jitter: Double

    public init(notBefore: Timestamp, notAfter: Timestamp, jitter: Double) {
      (self.notBefore, self.notAfter, self.jitter) = (notBefore, notAfter, jitter)
    }

    /// A tenth of the lifetime, at most a day.
    var orderPause: Duration { min(notAfter.since(notBefore) / 10, RenewalPlan.longestOrderPause) }

    init(_ certificate: IssuedCertificate) {
      let digits = certificate.leaf.fingerprint.prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
      self.init(
        notBefore: certificate.notBefore, notAfter: certificate.notAfter, jitter: Double(digits) / Double(UInt32.max))
    }
  }

  // MARK: Events

  /// The delays between attempts: `shortest`, then three times as long each time, at most `longest`.
  public struct Backoff: Sendable, Hashable {
    public var shortest: Duration
    public var longest: Duration

    /// At most five attempts in the first hour: Let's Encrypt allows five failed validations of a name in an hour.
    public static let standard = Backoff(shortest: .seconds(60), longest: .seconds(6 * 3600))

    public init(shortest: Duration, longest: Duration) { (self.shortest, self.longest) = (shortest, longest) }

    /// - Parameter random: 0 to 1; gates that fail together try again at different times.
    func delay(after failures: Int, random: Double) -> Duration {
      let delay = (1..<max(1, min(failures, 40))).reduce(shortest) { delay, _ in min(delay * 3, longest) }
      return min(delay, longest) * (0.75 + 0.5 * random)
    }
  }

  /// Records that an attempt begins, for a process that is killed before it ends: processes that die in each attempt
  /// must not order all the time. The attempt counts as failed until it succeeds.
  public mutating func began(at now: Timestamp, _ backoff: Backoff, random: Double) {
    failures += 1
    notBefore = now.advanced(by: backoff.delay(after: failures, random: random))
  }

  /// Records a failed attempt. The next one is after the delay, and not before the server accepts one.
  public mutating func failed(_ error: ACMEError, at now: Timestamp, _ backoff: Backoff, random: Double) {
    failures += 1
    lastFailure = Failure(code: error.code, text: "\(error)", at: now)
    let delay = backoff.delay(after: failures, random: random)
    // The pause after a certificate whose period is wrong.
    var next = max(now.advanced(by: delay), Self.plausible(notBefore, at: now, within: Self.longestWait) ?? now)
    if case .rateLimited(_, let until?) = error { next = max(next, until.advanced(by: delay / 10)) }
    notBefore = next
  }

  /// Records that the certificate is lost: its storage has a damaged one. A pause after a success ends, and a pause
  /// after a failure does not.
  mutating func lostCertificate() {
    if failures == 0 { notBefore = nil }
  }

  /// Records that `certificate` was obtained.
  ///
  /// The next order waits for a tenth of its lifetime, at most a day, whatever the clock or the server says: neither a
  /// wrong clock nor a wrong recommendation makes the gate order all the time.
  public mutating func obtained(_ certificate: Validity, at now: Timestamp) {
    self = RenewalPlan()
    notBefore = now.advanced(by: certificate.orderPause)
  }

  /// Records the server's recommendation.
  ///
  /// - Parameter again: When the server wants to be asked again; `nil` if it does not say.
  public mutating func learned(_ window: RenewalWindow, at now: Timestamp, again: Timestamp?) {
    self.window = window
    nextQuestion = Self.clamped(again, at: now)
  }

  /// Records that the server gave no recommendation. The last one is kept.
  public mutating func learnedNothing(at now: Timestamp, again: Timestamp?) {
    nextQuestion = Self.clamped(again, at: now)
  }

  /// RFC 9773 section 4.3: neither all the time nor hardly ever, and every six hours without a wish.
  private static func clamped(_ wish: Timestamp?, at now: Timestamp) -> Timestamp {
    let wish = wish ?? now.advanced(by: .seconds(6 * 3600))
    return min(max(wish, now.advanced(by: .seconds(60))), now.advanced(by: .seconds(86_400)))
  }
}

extension RenewalPlan: Codable {
  private struct Document: Codable {
    struct Failure: Codable { var code, text, at: String }
    var window: RenewalWindow?
    var next_question: String?
    var failures: Int
    var last_failure: Failure?
    var not_before: String?
  }

  public init(from decoder: any Decoder) throws {
    let document = try Document(from: decoder)
    window = document.window
    nextQuestion = document.next_question.flatMap { Timestamp(rfc3339: $0) }
    failures = min(max(0, document.failures), Self.mostFailures)
    lastFailure = document.last_failure.flatMap { failure in
      Timestamp(rfc3339: failure.at).map { Failure(code: failure.code, text: failure.text, at: $0) }
    }
    notBefore = document.not_before.flatMap { Timestamp(rfc3339: $0) }
  }

  public func encode(to encoder: any Encoder) throws {
    let failure = lastFailure.map { Document.Failure(code: $0.code, text: $0.text, at: $0.at.description) }
    try Document(
      window: window, next_question: nextQuestion?.description, failures: failures, last_failure: failure,
      not_before: notBefore?.description
    ).encode(to: encoder)
  }
}
