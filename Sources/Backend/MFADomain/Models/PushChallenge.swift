public import ByteCoding
public import Foundation

/// A sign-in that waits for the approval of another device of the user.
///
/// The device that signs in shows a number of two digits, which the approving user has to type: an approval without
/// looking cannot succeed.
public struct PushChallenge: Sendable, Hashable {
  public enum State: String, Sendable, Hashable { case pending, approved, denied }

  public static let lifetime = Duration.seconds(120)
  /// How many of a user's may wait at once.
  public static let mostPending = 3
  /// How many of a user's may begin in an hour without being approved.
  public static let mostInAnHour = 10
  /// How long after a denial no other may begin.
  public static let coolOff = Duration.seconds(300)

  public let id: UUID
  public let userID: UUID
  /// The session that waits.
  public let sessionID: UUID
  /// 10 to 99.
  public let number: Int
  /// 32 bytes.
  public let nonce: [UInt8]
  /// The address of the sign-in, as the gate reports it.
  public let address: String
  public let createdAt: Timestamp
  public let expiresAt: Timestamp
  public var state: State
  public var answeredAt: Timestamp?

  public init(
    id: UUID, userID: UUID, sessionID: UUID, number: Int, nonce: [UInt8], address: String, createdAt: Timestamp,
    expiresAt: Timestamp, state: State = .pending, answeredAt: Timestamp? = nil
  ) {
    self.id = id
    self.userID = userID
    self.sessionID = sessionID
    self.number = number
    self.nonce = nonce
    self.address = address
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.state = state
    self.answeredAt = answeredAt
  }

  /// The bytes that the approving device signs. They have a form of their own, so that no other signature of the key
  /// can replace this one.
  ///
  /// The line `sallyport-mfa push 1`, then the push's id, the user's id, the nonce in base64, the decision (`approve`
  /// or `deny`) and the number that was typed (`0` for a denial), one per line, each with a line feed.
  public static func signedBytes(
    id: UUID, userID: UUID, nonce: [UInt8], approves: Bool, number: Int
  ) -> [UInt8] {
    let lines = [
      "sallyport-mfa push 1", id.text, userID.text, Base64.encode(nonce),
      approves ? "approve" : "deny", String(number),
    ]
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }
}

extension PushChallenge {
  /// When another one may begin after `recent`, a user's of the last hour; `nil` if at `now`.
  static func pause(after recent: [PushChallenge], at now: Timestamp) -> Timestamp? {
    let denied = recent.filter { $0.state == .denied }.compactMap(\.answeredAt).max()?.advanced(by: coolOff)
    let pending = recent.filter { $0.state == .pending && now < $0.expiresAt }.map(\.expiresAt).sorted()
    let begun = recent.filter { $0.state != .approved }.map { $0.createdAt.advanced(by: .seconds(3600)) }.sorted()
    return [
      denied, pending.count < mostPending ? nil : pending[pending.count - mostPending],
      begun.count < mostInAnHour ? nil : begun[begun.count - mostInAnHour],
    ].compactMap(\.self).filter { now < $0 }.max()
  }
}
