/// A URL that may hold a password. Printed, it does not show it.
public struct StoreURL: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The URL as it was given.
  public let text: String

  init(_ text: String) { self.text = text }

  public var description: String { Self.masked(text) }
  public var customMirror: Mirror { Mirror(self, children: ["text": description]) }

  /// `text` with three dots in the place of passwords. It errs on the side of hiding too much, since a URL that is not
  /// well-formed is shown as well.
  static func masked(_ text: String) -> String {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let start = maskedUser(String(parts[0]))
    guard parts.count == 2 else { return start }
    let parameters = parts[1].split(separator: "&", omittingEmptySubsequences: false).map { parameter in
      let name = parameter.prefix { $0 != "=" }
      return name.lowercased().contains("password") ? "\(name)=…" : maskedUser(String(parameter))
    }
    return start + "?" + parameters.joined(separator: "&")
  }

  /// From the first colon behind `scheme://` to the last `@`: a password may hold every other character.
  private static func maskedUser(_ text: String) -> String {
    guard let end = text.lastIndex(of: "@") else { return text }
    let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
    guard start <= end, let colon = text[start..<end].firstIndex(of: ":") else { return text }
    return text[...colon] + "…" + text[end...]
  }
}

/// What `store.url` names: the password of a database may stand in a file of its own.
enum StoreAddress: Sendable, Hashable {
  case sqlite(path: String)
  case postgres(StoreURL)
}

extension Kind where Value == StoreAddress {
  /// Where keys, counters and spent nonces are kept.
  static var store: Kind {
    var kind = Kind(
      name: "store", form: "`sqlite:///path` or `postgres://user@host:port/database`",
      schema: .matching("^(sqlite:///[^?#]*[^/?#]|postgres(ql)?://[^ ]+)$")
    ) { text throws(Misfit) in
      for scheme in ["postgres://", "postgresql://"] where text.hasPrefix(scheme) {
        return try postgres(text, behind: scheme)
      }
      guard text.hasPrefix("sqlite://") else {
        throw Misfit(
          "\(Misfit.quoted(StoreURL.masked(text))) is not the URL of a store: sqlite:///path or postgres://…",
          suggestion: text.hasPrefix("/") ? "sqlite://\(text)" : nil)
      }
      return try sqlite(text.dropFirst("sqlite://".count))
    }
    kind.masked = StoreURL.masked
    return kind
  }

  private static func sqlite(_ path: Substring) throws(Misfit) -> StoreAddress {
    guard path.hasPrefix("/"), !path.hasSuffix("/") else {
      throw Misfit("the path of the database is absolute and names a file: sqlite:///path")
    }
    guard !path.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 < 0x20 }) else {
      throw Misfit("the URL of the database has no parameters: sqlite:///path")
    }
    return .sqlite(path: String(path))
  }

  // The rest is libpq's to judge, when the gate is put together.
  private static func postgres(_ text: String, behind scheme: String) throws(Misfit) -> StoreAddress {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      throw Misfit("the URL of the database holds a blank or a control character: write it as %20 and the like")
    }
    let place = text.dropFirst(scheme.count).prefix { $0 != "?" }
    let database = place.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).dropFirst().first
    let hasParameter = text.contains("dbname=")
    guard hasParameter || database.map({ !$0.isEmpty }) == true else {
      throw Misfit("the URL names no database: \(scheme)user@host/database")
    }
    return .postgres(StoreURL(text))
  }
}

extension GateSettings.Store {
  /// Why a text is not the URL of a store. It shows no password.
  public struct Malformed: Error, Sendable, Hashable {
    public let reason: String
  }

  /// The store that `url` names, as `store.url` takes it. Its password is in the URL, or where libpq looks for it.
  public init(url: String) throws(Malformed) {
    do throws(Misfit) {
      switch try Kind<StoreAddress>.store.read(url) {
      case .sqlite(let path): self = .sqlite(path: path)
      case .postgres(let url): self = .postgres(url, passwordFile: nil)
      }
    } catch {
      throw Malformed(reason: error.reason + (error.suggestion.map { " (did you mean \($0))" } ?? ""))
    }
  }
}
