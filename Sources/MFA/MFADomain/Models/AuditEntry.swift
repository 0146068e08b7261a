public import ByteCoding
internal import Crypto

/// One line of the history of what was decided. Each carries the hash of the one before it, so that none can be
/// changed, taken out or moved without its successors showing it. The hash has a key of the vault, so that write
/// access to the database does not suffice to make the chain again.
public struct AuditEntry: Sendable, Hashable {
  /// Counts from 1, without gaps.
  public let sequence: Int64
  public let at: Timestamp
  public let requestID: String
  /// Who did it: the caller's attested key, or `operator`.
  public let actor: String
  /// The key of the account's name; `nil` if it concerns none.
  public let account: String?
  public let event: String
  /// Values that are no secrets.
  public let detail: String
  public let previous: [UInt8]
  /// The number of the data key that its hash has; `nil` for an entry of an older version, whose hash has none.
  public let keyNumber: UInt32?

  public init(
    sequence: Int64, at: Timestamp, requestID: String, actor: String, account: String?, event: String, detail: String,
    previous: [UInt8], keyNumber: UInt32?
  ) {
    self.sequence = sequence
    self.at = at
    self.requestID = requestID
    self.actor = actor
    self.account = account
    self.event = event
    self.detail = detail
    self.previous = previous
    self.keyNumber = keyNumber
  }

  /// What the first entry has for a predecessor.
  public static let origin = [UInt8](repeating: 0, count: 32)

  /// SHA-256 over the authenticated bytes: the hash of an entry without a key.
  var unkeyedHash: [UInt8] { Array(SHA256.hash(data: authenticated)) }

  /// HMAC-SHA256 over the authenticated bytes.
  func hash(under key: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: authenticated, using: key))
  }

  /// The previous hash and every field, each with its length in front so that none can flow into the next.
  private var authenticated: [UInt8] {
    let key = keyNumber.map { ["key \($0)"] } ?? []
    let fields = [
      String(sequence), String(at.milliseconds), requestID, actor, account ?? "", account == nil ? "-" : "+", event,
      detail,
    ]
    return previous + (fields + key).flatMap { Array("\($0.utf8.count):".utf8) + Array($0.utf8) }
  }
}
