internal import Transport

/// What a client says in `Accept` (RFC 9110 section 12.5.1), as far as it matters here.
enum Accept {
  /// Whether JSON is asked for by its name; a wildcard asks for nothing.
  static func namesJSON(in headers: HeaderFields) -> Bool {
    headers.values(of: "Accept").lazy.flatMap { $0.split(separator: ",") }.contains { range in
      let parts = range.split(separator: ";").map { $0.trimmingSpaces() }
      guard let type = parts.first, HeaderFields.isSame(String(type), "application/json") else { return false }
      return !parts.dropFirst().contains(where: isZeroWeight)
    }
  }

  private static func isZeroWeight(_ parameter: Substring) -> Bool {
    guard parameter.lowercased().hasPrefix("q=") else { return false }
    return parameter.dropFirst(2).allSatisfy { $0 == "0" || $0 == "." }
  }
}
