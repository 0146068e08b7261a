/// Small documents that all gates of one store share, such as certificates that one of them obtained.
///
/// Like the identity signing keys, they are stored as they are: a reader of the store can read them.
public protocol SharedDocuments: Sendable {
  /// Returns the content of the document `name`; `nil` if there is none.
  func document(_ name: String) async throws(StoreError) -> [UInt8]?

  /// Replaces the content of the document `name`; `nil` removes it. The other gates get a notice.
  func setDocument(_ name: String, to content: [UInt8]?) async throws(StoreError)

  /// Tries to take the lock `name` and returns whether that worked. If several gates ask at once, one gets `true`,
  /// until it calls `unlockDocuments(_:)` or its connection closes.
  func lockDocuments(_ name: String) async throws(StoreError) -> Bool

  func unlockDocuments(_ name: String) async throws(StoreError)
}
