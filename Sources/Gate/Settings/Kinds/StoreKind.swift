internal import ConfigurationEngine

/// The parsed `store.url`. A database password may be in a separate file.
enum StoreAddress: Sendable, Hashable {
  case sqlite(path: String)
  case postgres(DatabaseURL)
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
      guard !DatabaseURL.isKeywordString(text) else {
        throw InvalidSetting("keyword strings are not supported: write postgres://user@host/database")
      }
      guard text.hasPrefix("sqlite://") else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(DatabaseURL.masked(text))) is not a store URL: write sqlite:///path or postgres://…",
          suggestion: text.hasPrefix("/") ? "sqlite://\(text)" : nil)
      }
      return try sqlite(text.dropFirst("sqlite://".count))
    }
    kind.masked = DatabaseURL.masked
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
    return .postgres(DatabaseURL(text))
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
