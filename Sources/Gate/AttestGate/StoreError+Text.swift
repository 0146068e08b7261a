extension StoreError: CustomStringConvertible {
  /// The reason as a clause that follows `the store` or the store's location and a colon.
  public var description: String {
    switch self {
    case .unreachable(let reason): "it cannot be reached: \(reason)"
    case .readOnly: "it is read-only"
    case .full: "its disk is full"
    case .locked: "it is locked"
    case .corrupt(let reason): "it is damaged: \(reason)"
    case .overloaded: "it is overloaded"
    case .closed: "it is closed"
    case .inDoubt(let reason): "the outcome of the commit is unknown: \(reason)"
    case .failed(let reason): "it reported an error: \(reason)"
    }
  }

  /// The recommended action.
  public var advice: String {
    switch self {
    case .unreachable:
      "check that the store exists, that this user can access it, and that no newer sallyport migrated it"
    case .readOnly: "make it writable, or name the primary server"
    case .full: "free disk space and try again"
    case .locked: "a restore or a long transaction is in progress: try again later"
    case .corrupt: "keep the damaged store for analysis, and restore a backup: sallyport store restore FILE"
    case .overloaded: "try again later"
    case .closed: "try again"
    case .inDoubt: "check whether the change was made, and repeat the command if not"
    case .failed: "see the log of the database"
    }
  }
}
