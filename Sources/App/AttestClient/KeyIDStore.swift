public import ByteCoding
internal import Locking

/// The state of the key in an installation. It does not contain the key itself, which never leaves the key service.
public struct KeyRecord: Sendable, Hashable {
  /// The identifier of the registered key; `nil` if none is registered.
  public var keyID: String?
  /// When a refused key was last given up for a new one; `nil` if never.
  public var renewedAt: Timestamp?

  /// Creates a record. Without values it means that no key is registered.
  public init(keyID: String? = nil, renewedAt: Timestamp? = nil) {
    self.keyID = keyID
    self.renewedAt = renewedAt
  }
}

/// Keeps the record of one installation and one gate over restarts.
///
/// A record is saved whole or not at all. The session calls a store from one task at a time.
public protocol KeyIDStore: Sendable {
  /// Returns the saved record, or an empty one if none was saved.
  func load() throws(KeyStoreError) -> KeyRecord
  /// Replaces the saved record. It is durable when this returns.
  func save(_ record: KeyRecord) throws(KeyStoreError)
}

/// A record that ends with the process: the next start makes and registers another key.
public final class MemoryKeyIDStore: KeyIDStore {
  private let record = LockedValue(KeyRecord())

  /// Creates a store with an empty record.
  public init() {}

  /// Returns the record.
  public func load() -> KeyRecord { record.withLock(\.self) }

  /// Replaces the record.
  public func save(_ record: KeyRecord) { self.record.withLock { $0 = record } }
}

/// Why a record could not be read or written.
public enum KeyStoreError: Error, Sendable, Hashable {
  /// The record cannot be read. The value is the reason.
  case unreadable(String)
  /// The record cannot be written. The value is the reason.
  case unwritable(String)
  /// The stored data is not a record.
  case malformed(String)
}

extension KeyStoreError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable(let reason): "the key record cannot be read: \(reason)"
    case .unwritable(let reason): "the key record cannot be written: \(reason)"
    case .malformed(let reason): "the key record is malformed: \(reason)"
    }
  }
}
