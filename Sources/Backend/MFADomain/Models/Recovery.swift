public import ByteCoding
public import Foundation

/// The recovery of an account whose devices are all lost.
///
/// It begins with a backup code. A new device is added only after a waiting period. During this time the account's
/// remaining devices, phone number and mailbox are notified and can stop it. An account has at most one open
/// recovery.
public struct Recovery: Sendable, Hashable {
  /// How it ended.
  public enum Outcome: String, Sendable, Hashable, CaseIterable { case completed, cancelled, expired }

  /// Its state, as shown to the client that began it.
  public enum State: String, Sendable, Hashable, CaseIterable { case waiting, ready, completed, cancelled, expired }

  /// How long it can be completed once the waiting is over.
  public static let window = Duration.seconds(7 * 86400)
  /// How many wrong guesses at its stop code it outlives, for the same reason as a link code.
  public static let mostStopFailures = 1000
  /// How many codes on paper may be guessed at one name in an hour, by all app instances together. Ten codes of 39 bits
  /// are found by that with odds of one in a hundred thousand in a year.
  public static let mostGuessesInAnHour = 100

  public let id: UUID
  public let userID: UUID
  /// The app instance that began the recovery. Only this instance can complete it.
  public let binding: Binding
  /// The address from which the recovery was begun, as the gate reports it.
  public let address: String
  /// The keyed hash of the code on paper that began it.
  public let codeHash: [UInt8]
  /// Wrong guesses at the code that stops it.
  public var stopFailures: Int
  public let startedAt: Timestamp
  /// When the waiting is over.
  public let readyAt: Timestamp
  /// When it is too late to complete it.
  public let expiresAt: Timestamp
  /// `nil` while it is open.
  public var outcome: Outcome?
  public var endedAt: Timestamp?
  /// The time of the second notification.
  public var remindedAt: Timestamp?

  public init(
    id: UUID, userID: UUID, binding: Binding, address: String, codeHash: [UInt8], stopFailures: Int = 0,
    startedAt: Timestamp, readyAt: Timestamp, expiresAt: Timestamp, outcome: Outcome? = nil,
    endedAt: Timestamp? = nil, remindedAt: Timestamp? = nil
  ) {
    self.id = id
    self.userID = userID
    self.binding = binding
    self.address = address
    self.codeHash = codeHash
    self.stopFailures = stopFailures
    self.startedAt = startedAt
    self.readyAt = readyAt
    self.expiresAt = expiresAt
    self.outcome = outcome
    self.endedAt = endedAt
    self.remindedAt = remindedAt
  }

  public func state(at now: Timestamp) -> State {
    switch outcome {
    case .completed: .completed
    case .cancelled: .cancelled
    case .expired: .expired
    case nil: now < readyAt ? .waiting : now < expiresAt ? .ready : .expired
    }
  }

  /// Whether it can still be completed, now or once the waiting is over.
  public func isOpen(at now: Timestamp) -> Bool { outcome == nil && now < expiresAt }

  /// Closes the recovery with `outcome`.
  mutating func end(_ outcome: Outcome, at now: Timestamp) {
    self.outcome = outcome
    endedAt = now
  }
}
