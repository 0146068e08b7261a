/// A store URL that may contain a password. Its description masks the password.
public struct StoreURL: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The URL as configured, including the password.
  public let text: String

  init(_ text: String) { self.text = text }

  public var description: String { Self.masked(text) }
  public var customMirror: Mirror { Mirror(self, children: ["text": description]) }

  /// Replaces passwords in `text` by an ellipsis. It masks too much rather than too little, because texts that are
  /// not well-formed URLs are shown as well.
  static func masked(_ text: String) -> String {
    if let keyword = leadingKeyword(of: text) { return "\(keyword)=…" }
    let start = maskedUser(text).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let place = maskedPorts(String(start[0]))
    guard start.count == 2 else { return place }
    let parameters = start[1].split(separator: "&", omittingEmptySubsequences: false).map(maskedParameter)
    return place + "?" + parameters.joined(separator: "&")
  }

  /// Whether `text` is a keyword string (`host=db password=…`, PostgreSQL's documentation, section 34.1.1.1).
  static func isKeywordString(_ text: String) -> Bool { leadingKeyword(of: text) != nil }

  private static func leadingKeyword(of text: String) -> Substring? {
    let keyword = text.prefix { $0.isLetter || $0 == "_" || $0 == "-" }
    let isAssigned = text[keyword.endIndex...].drop(while: \.isWhitespace).first == "="
    return isAssigned && !keyword.isEmpty ? keyword : nil
  }

  /// Masks everything between the user name, which ends at the first reserved character, and the last `@`.
  private static func maskedUser(_ text: String) -> String {
    let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
    guard let end = text.lastIndex(of: "@"), start <= end else { return text }
    let user = text[start..<end].prefix { !":/?#@".contains($0) }
    return user.endIndex == end ? text : text[..<user.endIndex] + ":…" + text[end...]
  }

  /// Masks a port that is not a number: in a URL without a host, the password is in its place.
  private static func maskedPorts(_ text: String) -> String {
    guard let start = text.firstRange(of: "://")?.upperBound else { return text }
    let hostsStart = text[start...].lastIndex(of: "@").map { text.index(after: $0) } ?? start
    let hosts = text[hostsStart...].prefix { $0 != "/" }
    let shown = hosts.split(separator: ",", omittingEmptySubsequences: false).map { host in
      guard !host.hasPrefix("["), let colon = host.firstIndex(of: ":") else { return String(host) }
      let isNumber = host[host.index(after: colon)...].utf8.allSatisfy { (0x30...0x39).contains($0) }
      return isNumber ? String(host) : host[...colon] + "…"
    }
    return text[..<hostsStart] + shown.joined(separator: ",") + text[hosts.endIndex...]
  }

  /// libpq also decodes parameter names, so an escaped name may be any name.
  private static func maskedParameter(_ parameter: Substring) -> String {
    guard let sign = parameter.firstIndex(of: "=") else { return parameter.isEmpty ? "" : "…" }
    let name = parameter[..<sign].lowercased()
    guard name.utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == 0x5F }) else { return "…" }
    // libpq accepts a URL or a keyword string in place of the database name.
    let hides = ["password", "secret"].contains(where: name.contains) || parameter.contains("@") || name == "dbname"
    return hides ? "\(parameter[..<sign])=…" : String(parameter)
  }
}

/// The parsed `store.url`. A database password may be in a separate file.
enum StoreAddress: Sendable, Hashable {
  case sqlite(path: String)
  case postgres(StoreURL)
}

extension Kind where Value == StoreAddress {
  /// The store of keys, counters and used nonces.
  static var store: Kind {
    var kind = Kind(
      name: "store", form: "`sqlite:///path` or `postgres://user@host:port/database`",
      schema: .matching("^(sqlite:///[^?#]*[^/?#]|postgres(ql)?://[^ ]+)$")
    ) { text throws(InvalidSetting) in
      for scheme in ["postgres://", "postgresql://"] where text.hasPrefix(scheme) {
        return try postgres(text, behind: scheme)
      }
      guard !StoreURL.isKeywordString(text) else {
        throw InvalidSetting("keyword strings are not supported: write postgres://user@host/database")
      }
      guard text.hasPrefix("sqlite://") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(StoreURL.masked(text))) is not a store URL: write sqlite:///path or postgres://…",
          suggestion: text.hasPrefix("/") ? "sqlite://\(text)" : nil)
      }
      return try sqlite(text.dropFirst("sqlite://".count))
    }
    kind.masked = StoreURL.masked
    return kind
  }

  private static func sqlite(_ path: Substring) throws(InvalidSetting) -> StoreAddress {
    guard path.hasPrefix("/"), !path.hasSuffix("/") else {
      throw InvalidSetting("the database path must be absolute and name a file: sqlite:///path")
    }
    guard !path.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 < 0x20 }) else {
      throw InvalidSetting("a SQLite URL cannot have parameters: sqlite:///path")
    }
    return .sqlite(path: String(path))
  }

  // libpq parses the rest when the store is created.
  private static func postgres(_ text: String, behind scheme: String) throws(InvalidSetting) -> StoreAddress {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      throw InvalidSetting(
        "the database URL contains a blank or a control character: write it percent-encoded, for example %20")
    }
    let place = text.dropFirst(scheme.count).prefix { $0 != "?" }
    let database = place.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).dropFirst().first
    let hasParameter = text.contains("dbname=")
    // An @ after the ? may mean that the ? belongs to the password. libpq rejects such a URL later.
    let isCut = text[place.endIndex...].contains("@")
    guard hasParameter || isCut || database.map({ !$0.isEmpty }) == true else {
      throw InvalidSetting("the URL has no database name: \(scheme)user@host/database")
    }
    return .postgres(StoreURL(text))
  }
}

extension GateSettings.Store {
  /// Why a text is not a valid store URL. The reason contains no password.
  public struct Malformed: Error, Sendable, Hashable {
    public let reason: String
  }

  /// Parses a URL in the form of `store.url`. The password is in the URL, or in a place where libpq looks for it.
  /// - Throws: `Malformed` if the URL is not valid.
  public init(url: String) throws(Malformed) {
    do throws(InvalidSetting) {
      switch try Kind<StoreAddress>.store.read(url) {
      case .sqlite(let path): self = .sqlite(path: path)
      case .postgres(let url): self = .postgres(url, passwordFile: nil)
      }
    } catch {
      throw Malformed(reason: error.reason + (error.suggestion.map { " (did you mean \($0))" } ?? ""))
    }
  }
}
