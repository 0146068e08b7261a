internal import AttestGate
internal import GRDB

extension StoreError {
  /// Converts an error of GRDB or of this target.
  init(_ error: any Error) {
    switch error {
    case let error as StoreError: self = error
    case let error as DatabaseError: self.init(error)
    default: self = .failed(reason: "\(error)")
    }
  }

  /// The file at `path` was deleted or replaced while in use.
  static func displaced(_ path: String) -> StoreError {
    .unreachable(
      reason: "\(path) was deleted or replaced while in use: put it back, or stop the gate and restore a backup")
  }

  private init(_ error: DatabaseError) {
    // `error.description` is not used: it quotes the arguments of the statement, including nonces and key ids.
    let reason = "\(error.extendedResultCode): \(error.message ?? "no message")"
    self =
      switch error.resultCode {
      case .SQLITE_FULL: .full
      case .SQLITE_READONLY: .readOnly
      case .SQLITE_BUSY, .SQLITE_LOCKED: .locked
      case .SQLITE_CANTOPEN, .SQLITE_IOERR, .SQLITE_PERM, .SQLITE_AUTH: .unreachable(reason: reason)
      case .SQLITE_CORRUPT, .SQLITE_NOTADB: .corrupt(reason: reason)
      default: .failed(reason: reason)
      }
  }

  /// Whether the connection must be closed, so that the next call opens the file again.
  var endsConnection: Bool {
    switch self {
    case .unreachable, .readOnly, .corrupt, .closed, .inDoubt: true
    case .full, .locked, .overloaded, .failed: false
    }
  }

  /// Whether the fault affects the whole store and therefore every job of a batch.
  var isOfTheStore: Bool {
    switch self {
    case .unreachable, .readOnly, .full, .locked, .closed, .overloaded, .inDoubt: true
    case .corrupt, .failed: false
    }
  }
}
