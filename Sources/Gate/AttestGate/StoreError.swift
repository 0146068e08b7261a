/// The reason why a store operation failed. Nothing was changed, except possibly with `.inDoubt`.
public enum StoreError: Error, Sendable, Hashable {
  /// The store could not be opened or reached; `reason` is for the log.
  case unreachable(reason: String)
  case readOnly
  case full
  /// Another process held a lock for longer than the timeout.
  case locked
  /// Stored data violates a rule of the schema.
  case corrupt(reason: String)
  /// The queue of waiting calls is full.
  case overloaded
  /// The store has been closed.
  case closed
  /// The commit was sent, but its outcome is unknown. The waiting request is refused and never retried: its nonce may
  /// have been spent.
  case inDoubt(reason: String)
  /// Any other error from the database library.
  case failed(reason: String)

  /// A stable word for the log.
  public var step: String {
    switch self {
    case .unreachable: "store_unreachable"
    case .readOnly: "store_read_only"
    case .full: "store_full"
    case .locked: "store_locked"
    case .corrupt: "store_corrupt"
    case .overloaded: "store_overloaded"
    case .closed: "store_closed"
    case .inDoubt: "store_in_doubt"
    case .failed: "store_failed"
    }
  }
}
