public import ByteCoding
internal import Crypto

/// An entry of the history of decisions. Each entry contains the hash of the previous one, so that an entry cannot be
/// changed, removed or moved without a break in the chain. The hash uses a key of the vault, so that write access to
/// the database does not suffice to rebuild the chain.
public struct AuditEntry: Sendable, Hashable {
  /// Counts from 1, without gaps.
  public let sequence: Int64
  public let at: Timestamp
  public let requestID: String
  /// The actor: the caller's attested key, or `operator`.
  public let actor: String
  /// The key of the account's name; `nil` if the entry concerns no account.
  public let account: String?
  public let event: String
  /// Values that are not secret.
  public let detail: String
  public let previous: [UInt8]
  /// The number of the data key for the hash; `nil` for an entry of an older version, whose hash has no key.
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

  /// The previous hash of the first entry.
  public static let origin = [UInt8](repeating: 0, count: 32)

  /// SHA-256 over the authenticated bytes: the hash of an entry without a key.
  var unkeyedHash: [UInt8] { Array(SHA256.hash(data: authenticated)) }

  /// HMAC-SHA256 over the authenticated bytes.
  func hash(under key: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: authenticated, using: key))
  }

  /// The previous hash and every field, each preceded by its length, so that the boundaries of fields are
  /// authenticated.
  private var authenticated: [UInt8] {
    let key = keyNumber.map { ["key \($0)"] } ?? []
    let fields = [
      String(sequence), String(at.milliseconds), requestID, actor, account ?? "", account == nil ? "-" : "+", event,
      detail,
    ]
    return previous + (fields + key).flatMap { Array("\($0.utf8.count):".utf8) + Array($0.utf8) }
  }
}
