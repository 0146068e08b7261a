/// Why a file of tokens cannot be imported.
public enum ImportError: Error, Sendable, Hashable {
  /// The file as a whole is malformed, too large or of another kind.
  case file(String)
  /// Faults of single tokens, each with its place: at least one, and at most `mostNamed`; and their number.
  case tokens([String], count: Int)
  /// The keys of the file are encrypted, and the given key or passphrase is missing or wrong.
  case key(String)

  /// How many faults are named.
  public static let mostNamed = 20
}

/// The faults of tokens, of which the first ones are named.
struct TokenFaults {
  private var named: [String] = []
  private var count = 0

  mutating func add(_ place: String, _ reason: String) {
    count += 1
    if named.count < ImportError.mostNamed { named.append("\(place): \(reason)") }
  }

  func check() throws(ImportError) {
    if count > 0 { throw .tokens(named, count: count) }
  }
}
