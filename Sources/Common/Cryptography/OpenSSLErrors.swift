internal import COpenSSL

/// OpenSSL's error queue, one for each thread: cleared before a call and read after it, so that one object's failure is
/// never reported as another's.
enum OpenSSLErrors {
  static func clear() { ERR_clear_error() }

  /// The reason of the newest error of this thread. Empties the queue.
  static func take() -> String {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    guard code != 0 else { return "no reason given" }
    guard let reason = ERR_reason_error_string(code) else { return "error \(code)" }
    return String(cString: reason)
  }

  /// Runs `body` with an empty queue and leaves an empty one.
  static func isolated<Result>(_ body: () -> Result) -> Result {
    ERR_clear_error()
    defer { ERR_clear_error() }
    return body()
  }
}
