public import AttestGate

/// Why an import ended before its end. What was merged until then stays, and may be merged again.
public enum ImportFault: Error, Sendable, Hashable {
  case unreadable(String)
  /// There is no header that this version knows.
  case foreign
  /// A line, counted from 1, breaks the format.
  case malformed(line: Int, String)
  /// The file ends before its trailer.
  case truncated(afterLine: Int)
  /// The trailer tells of other lines than these.
  case altered
  /// The store has a key of this id that is another one.
  case conflict(line: Int, key: KeyHash)
  case store(StoreError, line: Int)
}

extension ImportFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable(let reason): "cannot be read: \(reason)"
    case .foreign: "is no export of keys of a version that is known here"
    case .malformed(let line, let rule): "line \(line) \(rule)"
    case .truncated(let line): "ends after line \(line), before its trailer: it was cut"
    case .altered: "was altered: its trailer tells of other lines"
    case .conflict(let line, let key):
      "line \(line): the store has the key \(key.short) for another app, environment or public key"
    case .store(let error, let line): "line \(line): the store does not take it: \(error)"
    }
  }
}
