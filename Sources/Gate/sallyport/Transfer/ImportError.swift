public import AttestGate

/// The reason why an import stopped. Keys that were already merged stay, and may be merged again.
public enum ImportError: Error, Sendable, Hashable {
  case unreadable(String)
  /// The file has no header of a supported version.
  case foreign
  /// A line, counted from 1, has an invalid format.
  case malformed(line: Int, String)
  /// The file ends before its trailer.
  case truncated(afterLine: Int)
  /// The lines do not match the trailer.
  case altered
  /// The store contains a different key with this id.
  case conflict(line: Int, key: KeyHash)
  case store(StoreError, line: Int)
}

extension ImportError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable(let reason): "cannot be read: \(reason)"
    case .foreign: "is not a key export of a supported version"
    case .malformed(let line, let rule): "line \(line) \(rule)"
    case .truncated(let line): "ends after line \(line) without a trailer: it is incomplete"
    case .altered: "was altered: its lines do not match its trailer"
    case .conflict(let line, let key):
      "line \(line): the store has the key \(key.short) for another app, environment or public key"
    case .store(let error, let line): "line \(line): the store did not accept it: \(error)"
    }
  }
}
