/// A parsed database URL. Its password may be in a separate file.
public enum DatabaseAddress: Sendable, Hashable {
  case sqlite(path: String)
  case postgres(DatabaseURL)
}

extension Kind where Value == DatabaseAddress {
  /// A database, called `name` in the documents.
  public static func database(_ name: String) -> Kind {
    var kind = Kind(
      name: name, form: "`sqlite:///path` or `postgres://user@host:port/database`",
      schema: .matching("^(sqlite:///[^?#]*[^/?#]|postgres(ql)?://[^ ]+)$")
    ) { text throws(InvalidSetting) in
      for scheme in ["postgres://", "postgresql://"] where text.hasPrefix(scheme) {
        return try postgres(text, behind: scheme)
      }
      guard !DatabaseURL.isKeywordString(text) else {
        throw InvalidSetting("keyword strings are not supported: write postgres://user@host/database")
      }
      guard text.hasPrefix("sqlite://") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(DatabaseURL.masked(text))) is not a \(name) URL: write sqlite:///path or postgres://…",
          suggestion: text.hasPrefix("/") ? "sqlite://\(text)" : nil)
      }
      return try sqlite(text.dropFirst("sqlite://".count))
    }
    kind.masked = DatabaseURL.masked
    return kind
  }

  private static func sqlite(_ path: Substring) throws(InvalidSetting) -> DatabaseAddress {
    guard path.hasPrefix("/"), !path.hasSuffix("/") else {
      throw InvalidSetting("the database path must be absolute and name a file: sqlite:///path")
    }
    guard !path.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 < 0x20 }) else {
      throw InvalidSetting("a SQLite URL cannot have parameters: sqlite:///path")
    }
    return .sqlite(path: String(path))
  }

  // libpq parses the rest when the store is created.
  private static func postgres(_ text: String, behind scheme: String) throws(InvalidSetting) -> DatabaseAddress {
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
    return .postgres(DatabaseURL(text))
  }
}
