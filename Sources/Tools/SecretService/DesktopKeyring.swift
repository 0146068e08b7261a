/// The keyring of a desktop user, by the Secret Service API (freedesktop.org): GNOME Keyring, KWallet or KeePassXC.
///
/// An item has attributes, which are not secret, and a secret. Any program of the user can read both while the keyring
/// is unlocked.
///
/// Each call opens its own session with the service and blocks the calling thread, at most for the time limit. No call
/// starts a session bus, and none shows a prompt unless it may.
public struct DesktopKeyring: Sendable {
  private let mayPrompt: Bool
  private let limit: Duration

  /// Creates a value; touches nothing.
  ///
  /// - Parameters:
  ///   - mayPrompt: Whether the service may ask the user to unlock the keyring.
  ///   - limit: The longest that a call takes; `nil` for five seconds, or two minutes if it may prompt.
  public init(mayPrompt: Bool = false, limit: Duration? = nil) {
    self.mayPrompt = mayPrompt
    self.limit = limit ?? (mayPrompt ? .seconds(120) : .seconds(5))
  }

  /// Checks that a service answers. Its keyring may be locked.
  ///
  /// - Throws: `unavailable`, or `timedOut`.
  public func checkAvailability() throws(SecretServiceError) {
    _ = try ServiceSession(within: TimeLimit(limit))
  }

  /// The secret of an item whose attributes include `attributes`; `nil` if there is none.
  ///
  /// Of several items, one that is unlocked comes first. The bytes are a copy in ordinary memory.
  ///
  /// - Throws: `locked` if only a locked item matches.
  public func secret(for attributes: [String: String]) throws(SecretServiceError) -> [UInt8]? {
    let table = try AttributeTable(attributes)
    let items = try ServiceSession(within: TimeLimit(limit)).search(table, all: false, mayPrompt: mayPrompt)
    if items.isEmpty { return nil }
    if items.areLocked { throw mayPrompt ? .dismissed : .locked }
    guard let secret = items.first else { throw .failed("an item without a secret") }
    return secret.bytes
  }

  /// Stores `secret` in the default collection, in place of an item with the same attributes.
  ///
  /// - Parameters:
  ///   - label: The name for people, in the desktop's program for passwords.
  ///   - attributes: The keys to find the item by. Not secret, even while the keyring is locked.
  /// - Throws: `unavailable` if there is no default collection, `locked` if it is locked.
  public func store(
    _ secret: [UInt8], label: String, for attributes: [String: String]
  ) throws(SecretServiceError) {
    let table = try AttributeTable(attributes)
    guard !label.utf8.contains(0) else { throw .invalid("a label with a NUL") }
    let session = try ServiceSession(within: TimeLimit(limit))
    if !mayPrompt {
      // libsecret would ask the user for a password, to unlock the collection or to create one.
      guard let isLocked = try session.isDefaultLocked() else {
        throw .unavailable("the service has no default collection")
      }
      if isLocked { throw .locked }
    }
    try session.store(SecretBytes(secret), label: label, for: table)
  }

  /// Removes each item whose attributes include `attributes`. Returns whether there was one.
  ///
  /// - Throws: `locked` if one of them is locked; then none is removed.
  @discardableResult
  public func remove(for attributes: [String: String]) throws(SecretServiceError) -> Bool {
    let table = try AttributeTable(attributes)
    let limit = TimeLimit(limit)
    let items = try ServiceSession(within: limit).search(table, all: true, mayPrompt: mayPrompt)
    if items.areLocked { throw mayPrompt ? .dismissed : .locked }
    try items.delete(within: limit)
    return !items.isEmpty
  }
}
