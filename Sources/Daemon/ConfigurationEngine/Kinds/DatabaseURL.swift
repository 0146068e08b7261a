/// The URL of a database that may contain a password. Its description masks the password.
public struct DatabaseURL: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The URL as configured, including the password.
  public let text: String

  public init(_ text: String) { self.text = text }

  /// The URL with passwords masked.
  public var description: String { Self.masked(text) }
  public var customMirror: Mirror { Mirror(self, children: ["text": description]) }

  /// Replaces passwords in `text` by an ellipsis. It masks too much rather than too little, because texts that are
  /// not well-formed URLs are shown as well.
  public static func masked(_ text: String) -> String {
    if let keyword = leadingKeyword(of: text) { return "\(keyword)=…" }
    let start = maskedUser(text).unicodeScalars.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let place = maskedPorts(String(start[0]))
    guard start.count == 2 else { return place }
    let parameters = start[1].split(separator: "&", omittingEmptySubsequences: false).map {
      maskedParameter(String($0))
    }
    return place + "?" + parameters.joined(separator: "&")
  }

  /// Whether `text` is a keyword string (`host=db password=…`, PostgreSQL's documentation, section 34.1.1.1).
  public static func isKeywordString(_ text: String) -> Bool { leadingKeyword(of: text) != nil }

  private static func leadingKeyword(of text: String) -> Substring? {
    let keyword = text.prefix { $0.isLetter || $0 == "_" || $0 == "-" }
    let isAssigned = text[keyword.endIndex...].drop(while: \.isWhitespace).unicodeScalars.first == "="
    return isAssigned && !keyword.isEmpty ? keyword : nil
  }

  // Signs are looked for among Unicode scalars: a mark that combines with a sign makes another character of it.

  /// Masks everything between the user name, which ends at the first reserved character, and the last `@`.
  private static func maskedUser(_ text: String) -> String {
    let scalars = text.unicodeScalars
    let start = scalars.firstRange(of: "://".unicodeScalars)?.upperBound ?? scalars.startIndex
    guard let end = scalars.lastIndex(of: "@"), start <= end else { return text }
    let user = scalars[start..<end].prefix { !":/?#@".unicodeScalars.contains($0) }
    return user.endIndex == end ? text : text[..<user.endIndex] + ":…" + text[end...]
  }

  /// Masks a port that is not a number: in a URL without a host, the password is in its place.
  private static func maskedPorts(_ text: String) -> String {
    let scalars = text.unicodeScalars
    guard let start = scalars.firstRange(of: "://".unicodeScalars)?.upperBound else { return text }
    let hostsStart = scalars[start...].lastIndex(of: "@").map { scalars.index(after: $0) } ?? start
    let hosts = scalars[hostsStart...].prefix { $0 != "/" }
    let shown = hosts.split(separator: ",", omittingEmptySubsequences: false).map { host -> String in
      guard host.first != "[", let colon = host.firstIndex(of: ":") else { return String(host) }
      let isNumber = host[host.index(after: colon)...].allSatisfy { (0x30...0x39).contains($0.value) }
      return isNumber ? String(host) : String(host[...colon]) + "…"
    }
    return text[..<hostsStart] + shown.joined(separator: ",") + text[hosts.endIndex...]
  }

  /// libpq also decodes parameter names, so an escaped name may be any name.
  private static func maskedParameter(_ parameter: String) -> String {
    guard let sign = parameter.unicodeScalars.firstIndex(of: "=") else { return parameter.isEmpty ? "" : "…" }
    let name = parameter[..<sign].lowercased()
    guard name.utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == 0x5F }) else { return "…" }
    // libpq accepts a URL or a keyword string in place of the database name.
    let hides =
      ["password", "secret"].contains(where: name.contains) || parameter.utf8.contains(UInt8(ascii: "@"))
      || name == "dbname"
    return hides ? "\(parameter[..<sign])=…" : parameter
  }
}
