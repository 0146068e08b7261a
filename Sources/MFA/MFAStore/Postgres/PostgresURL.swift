internal import CPostgres

/// What libpq reads in a URL, and what it says of one, without what may be a secret.
public enum PostgresURL {
  /// Why `url` is none that libpq takes (PostgreSQL's documentation, section 34.1.1.2); `nil` if it is one.
  public static func fault(in url: String) -> String? {
    do throws(PostgresConnection.Fault) {
      _ = try options(of: url)
      return nil
    } catch {
      return error.message
    }
  }

  /// What the URL sets, by libpq's keywords.
  static func options(of url: String) throws(PostgresConnection.Fault) -> [String: String] {
    guard isUnambiguous(url) else {
      throw PostgresConnection.Fault(code: "", message: "it has an @, / or ? in user or password that is not encoded")
    }
    var message: UnsafeMutablePointer<CChar>?
    guard let first = PQconninfoParse(url, &message) else {
      defer { PQfreemem(message) }
      let text = message.map { String(cString: $0) } ?? "out of memory"
      throw PostgresConnection.Fault(code: "", message: discreet(text))
    }
    defer { PQconninfoFree(first) }
    var values: [String: String] = [:]
    var option = first
    // The array ends with an option without keyword.
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }

  /// A message of libpq's on one line. What it quotes is left out unless all of it is `known`: it may be a part of a
  /// password that was taken for something else.
  static func discreet(_ message: String, known: [String] = []) -> String {
    let parts = message.split(separator: "\"", omittingEmptySubsequences: false)
    let quoted = parts.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    let lines = { (text: String) in text.split(whereSeparator: \.isNewline).joined(separator: "; ") }
    guard let first = parts.first, let last = parts.last, !quoted.allSatisfy(known.contains) else {
      return lines(message)
    }
    return lines(first + "…" + last)
  }

  /// Whether there is one way to read `url`: at most one `@`, and no `/` or `?` before it. With another one libpq would
  /// take a part of the password for a host, a database or a parameter, and say so.
  private static func isUnambiguous(_ url: String) -> Bool {
    guard let scheme = url.firstRange(of: "://") else { return false }
    let body = url[scheme.upperBound...]
    guard let sign = body.lastIndex(of: "@") else { return true }
    return !body[..<sign].contains { "@/?".contains($0) }
  }
}
