public import protocol Foundation.LocalizedError

/// Why there is no answer. The texts are for people.
public enum TransportError: Error, Sendable, Hashable {
  /// No connection: name resolution or routing failed, or no process listens.
  case unreachable(String)
  /// The handshake failed, or the server's certificate is not to be trusted.
  case untrusted(String)
  /// The connection ended, or time ran out, before the answer was complete: the request may have been carried out.
  case lost(String)
  /// The answer broke its protocol.
  case malformed(String)
  /// The answer is longer than this many bytes, the most that is read.
  case tooLarge(Int)
}

extension TransportError: CustomStringConvertible {
  public var description: String { description(of: "the server") }

  /// The error as a sentence about `server`, such as "the gate".
  public func description(of server: String) -> String {
    switch self {
    case .unreachable(let reason): "\(server) cannot be reached: \(reason)"
    case .untrusted(let reason): "no trusted connection: \(reason)"
    case .lost(let reason): "\(server)'s answer was lost: \(reason)"
    case .malformed(let reason): "\(server)'s answer is malformed: \(reason)"
    case .tooLarge(let limit): "\(server)'s answer is longer than \(limit) bytes"
    }
  }
}

extension TransportError: LocalizedError {
  public var errorDescription: String? { description }
}
