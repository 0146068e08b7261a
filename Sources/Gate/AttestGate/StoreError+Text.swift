extension StoreError: CustomStringConvertible {
  /// What is wrong, for people: it goes on from `the store` or its place and a colon.
  public var description: String {
    switch self {
    case .unreachable(let reason): "it cannot be reached: \(reason)"
    case .readOnly: "it is read-only"
    case .full: "its disk is full"
    case .locked: "it is locked"
    case .corrupt(let reason): "it is damaged: \(reason)"
    case .overloaded: "it has too much to do"
    case .closed: "it is closed"
    case .inDoubt(let reason): "it is not known whether it was done: \(reason)"
    case .failed(let reason): "it reports: \(reason)"
    }
  }

  /// What to do about it.
  public var advice: String {
    switch self {
    case .unreachable:
      "see that the store is there, that this user may use it, and that this sallyport is not older than it"
    case .readOnly: "make it writable, or name the primary"
    case .full: "make room and try again"
    case .locked: "a restore or a long transaction is under way: try again later"
    case .corrupt: "keep it as it is, and restore a backup: sallyport store restore FILE"
    case .overloaded: "try again later"
    case .closed: "try again"
    case .inDoubt: "look, and do it again if it was not"
    case .failed: "see the database's own log"
    }
  }
}
