public import Foundation
internal import Wire

/// What is to be done to have a valid access token. A value, so that every case can be tried without a provider.
public enum RefreshDecision: Sendable, Hashable {
  /// The access token is valid.
  case use
  /// Exchange the refresh token.
  case refresh
  /// Exchange the refresh token once. An earlier answer was lost, so that a refusal is no proof that the person was signed
  /// out.
  case tryOnce
  /// The provider asked to wait until then.
  case wait(until: Date)
  /// Sign in again.
  case signIn(Reason)

  /// Why a new sign-in is needed.
  public enum Reason: Sendable, Hashable {
    /// The access token has expired, and the provider issued no refresh token.
    case noRefreshToken
    /// The provider refused the refresh token with this code.
    case refused(String)
    /// The provider refused the refresh token with this code, after its successor was lost on the way.
    case refusedAfterLostAnswer(String)
  }

  /// An access token is renewed when fewer seconds of it remain, or less than half of its lifetime.
  public static let margin: TimeInterval = 60

  /// The longest pause that a provider can ask for, in seconds. A longer one means that the clock was set back.
  static let longestPause: TimeInterval = 86_400

  /// Decides for `account` at `now`.
  ///
  /// - Parameter rejected: The access token that a service answered with 401; `nil` if there was no such answer. If it is
  ///   not the present one, it was renewed in the meantime.
  public init(_ account: StoredAccount, at now: Date, rejected: String? = nil) {
    let isRejected = rejected == account.tokens.accessToken
    let remaining = account.expiresAt.timeIntervalSince(now)
    // A clock that was set back says nothing about the lifetime.
    let isCredible = account.isOpenEnded || account.issuedAt.timeIntervalSince(now) < Self.margin
    // A token that lives for a minute is not renewed as soon as it is there.
    let margin = min(Self.margin, account.tokens.expiresIn / 2)
    if !isRejected, isCredible, remaining >= margin, remaining > 0 {
      self = .use
      return
    }
    let isStillValid = !isRejected && isCredible && remaining > 0
    switch account.refreshState {
    case .paused(let end) where account.isOfMachine && end > now && end.timeIntervalSince(now) <= Self.longestPause:
      self = isStillValid ? .use : .wait(until: end)
    // The client can ask again as often as it wants.
    case _ where account.isOfMachine: self = .refresh
    case _ where account.tokens.refreshToken == nil && account.refreshState.refusal == nil:
      self = isStillValid ? .use : .signIn(.noRefreshToken)
    case .settled: self = .refresh
    case .sent: self = .tryOnce
    case .paused(let end) where end > now && end.timeIntervalSince(now) <= Self.longestPause:
      self = isStillValid ? .use : .wait(until: end)
    case .paused: self = .refresh
    case .refused(let code, let afterLostAnswer):
      self =
        isStillValid ? .use : .signIn(afterLostAnswer ? .refusedAfterLostAnswer(code) : .refused(code))
    }
  }
}

extension RefreshState {
  fileprivate var refusal: String? {
    if case .refused(let code, _) = self { code } else { nil }
  }
}

/// A refresh that failed, and how far it came: what the error says about the refresh token depends on it.
struct FailedRefresh: Error, Hashable {
  enum Stage: Sendable, Hashable, CaseIterable {
    /// The refresh token was not sent yet: the discovery document, the keys, the attestation of the client or the challenge
    /// for its proof could not be fetched.
    case preparing
    /// The refresh token was sent, as far as the error does not say otherwise.
    case exchanging
    /// The provider has issued new tokens, which cannot be used.
    case verifying
  }

  let stage: Stage
  let error: OIDCError
  /// The refresh token of an answer that cannot be used otherwise; `nil` if there is none, or the answer may be that of
  /// another person.
  var refreshToken: String?

  /// Whether the same request may succeed a moment later, and is safe to send again.
  var isPassing: Bool {
    if case .transport(.unreachable) = error { stage != .verifying } else { false }
  }
}

/// What a failed refresh says about the refresh token. A value, as above.
enum RefreshFailure: Sendable, Hashable {
  /// The provider never saw the request: the token is what it was, and the request may be repeated.
  case notDelivered
  /// The provider refuses to act now, and asks to wait so many seconds.
  case postponed(Int)
  /// The provider refuses the token: its code.
  case tokenRefused(String)
  /// The provider refuses this client or this request, and has not looked at the token.
  case requestRefused
  /// The provider has answered with new tokens, whose ID token is not accepted: the refresh token of that answer.
  case answerRefused(refreshToken: String)
  /// The provider may have replaced the token: the answer was lost, or cannot be used.
  case uncertain

  init(_ failed: FailedRefresh) {
    self =
      switch (failed.stage, failed.error) {
      case (.preparing, .status(429, _, let pause)): .postponed(pause ?? 30)
      case (.preparing, .status(503, _, let pause?)): .postponed(pause)
      case (.preparing, _): .notDelivered
      case (.exchanging, let error): Self(ofExchange: error)
      // The old token may be replaced, whatever went wrong afterwards.
      case (.verifying, _): failed.refreshToken.map { .answerRefused(refreshToken: $0) } ?? .uncertain
      }
  }

  private init(ofExchange error: OIDCError) {
    self =
      switch error {
      case .transport(.unreachable), .transport(.untrusted), .notOffered, .clientKey, .attestation,
        .attestedKeyChanged, .otherIssuer:
        .notDelivered
      case .refused(let refusal) where refusal.error == "invalid_grant": .tokenRefused(refusal.error)
      case .refused, .redirected: .requestRefused
      case .status(429, _, let pause): .postponed(pause ?? 30)
      case .status(503, _, let pause?): .postponed(pause)
      // Only an error of OAuth says that the token is refused. A proxy may have answered with a page of its own.
      case .status(let status, _, _) where (400..<500).contains(status): .requestRefused
      default: .uncertain
      }
  }
}

/// Pauses between attempts that were not delivered: exponential, with full jitter, so that many clients of a provider that
/// comes back do not come back at the same instant.
struct Backoff: Sendable {
  /// The number of attempts in all.
  static let attempts = 3
  private static let first = 0.25
  private static let longest = 4.0

  /// The pause after the attempt `number`, counted from 1: between zero and a bound that doubles.
  static func pause(after number: Int, random: UInt8) -> Duration {
    let bound = min(first * Double(1 << min(number - 1, 10)), longest)
    return .milliseconds(Int(bound * 1000 * Double(random) / 255))
  }
}
