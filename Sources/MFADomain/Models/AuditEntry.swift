public import ByteCoding
internal import Crypto

/// One line of the history of what was decided. Each carries the hash of the one before it, so that none can be changed,
/// taken out or moved without its successors showing it.
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

  public init(
    sequence: Int64, at: Timestamp, requestID: String, actor: String, account: String?, event: String, detail: String,
    previous: [UInt8]
  ) {
    self.sequence = sequence
    self.at = at
    self.requestID = requestID
    self.actor = actor
    self.account = account
    self.event = event
    self.detail = detail
    self.previous = previous
  }

  /// What the first entry has for a predecessor.
  public static let origin = [UInt8](repeating: 0, count: 32)

  /// SHA-256 over the previous hash and every field, each with its length in front so that none can flow into the next.
  public var hash: [UInt8] {
    var digest = SHA256()
    digest.update(data: previous)
    let fields = [
      String(sequence), String(at.milliseconds), requestID, actor, account ?? "", account == nil ? "-" : "+", event,
      detail,
    ]
    for field in fields {
      digest.update(data: Array("\(field.utf8.count):".utf8))
      digest.update(data: Array(field.utf8))
    }
    return Array(digest.finalize())
  }
}
