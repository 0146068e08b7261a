internal import COpenSSL

/// The errors that OpenSSL has recorded on this thread.
struct OpenSSLError: Error, CustomStringConvertible {
  let description: String

  /// Reads and clears this thread's error queue.
  init(_ context: String) {
    var reasons: [String] = []
    while true {
      let code = ERR_get_error()
      if code == 0 { break }
      if let reason = ERR_reason_error_string(code) { reasons.append(String(cString: reason)) }
    }
    description = reasons.isEmpty ? context : "\(context): \(reasons.joined(separator: ", "))"
  }
}
