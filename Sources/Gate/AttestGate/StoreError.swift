/// Why a store did not do what was asked. Nothing was changed, unless the commit itself is in doubt (`.inDoubt`).
public enum StoreError: Error, Sendable, Hashable {
  /// The store could not be opened or reached; `reason` is for the log.
  case unreachable(reason: String)
  case readOnly
  case full
  /// Another process kept it locked for longer than the store waits.
  case locked
  /// What is stored breaks a rule of the schema.
  case corrupt(reason: String)
  /// More calls wait than the store lets wait.
  case overloaded
  /// The store is shut.
  case closed
  /// The commit was requested and its outcome is unknown. The caller is refused and nothing is retried: a nonce that
  /// may have been spent is worth nothing.
  case inDoubt(reason: String)
  /// Anything else that the store's library reported.
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
