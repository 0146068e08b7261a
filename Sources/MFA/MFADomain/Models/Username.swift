internal import Foundation

/// The name of an account: 1 to 128 characters, none of them a control character, and no white space at the ends.
///
/// Names that differ in case or in compatibility forms alone are one name (NFKC, in any script): full-width letters
/// are the plain ones, and by the full case mappings `ß` and `SS`, or a sigma in the middle and one at the end, are
/// alike too.
public struct Username: Sendable, Hashable {
  /// As the client wrote it.
  public let text: String
  /// What is compared and stored.
  public let key: String
  /// The key by the rule of older versions, which kept compatibility forms apart. An account that would have shared its
  /// key with another one at the migration still has this key, so it is looked for first.
  public let formerKey: String

  /// The most bytes that a key has in an index.
  public static let longestKey = 1024

  public init(_ text: String) throws(InvalidValue) {
    guard (1...128).contains(text.count), text.utf8.count <= 512 else {
      throw InvalidValue(field: "username", rule: "has 1 to 128 characters")
    }
    guard text.hasNoControls, text.trimmingCharacters(in: .whitespacesAndNewlines) == text else {
      throw InvalidValue(field: "username", rule: "has no control characters, and no white space at its ends")
    }
    self.text = text
    formerKey = Self.folded(text.precomposedStringWithCanonicalMapping).precomposedStringWithCanonicalMapping
    key = Self.compatibilityKey(of: text)
  }

  /// The name of an account as a store kept it, with the key that it has there.
  public init(kept text: String, key: String) {
    self.text = text
    self.key = key
    formerKey = key
  }

  public static func == (first: Username, second: Username) -> Bool { first.key == second.key }
  public func hash(into hasher: inout Hasher) { hasher.combine(key) }

  /// The text in lower case by way of the upper case, so that letters meet that lower case alone keeps apart.
  ///
  /// The capital ẞ has itself for upper case, and the small one SS: they meet by lower case first.
  private static func folded(_ text: String) -> String { text.lowercased().uppercased().lowercased() }

  /// Composed after the folding as well, since the lower case of composed text need not be (`J̌` has no character of
  /// its own, `ǰ` has), and again until nothing changes: some letters have compatibility forms in one case alone.
  private static func compatibilityKey(of text: String) -> String {
    var key = text.precomposedStringWithCompatibilityMapping
    for _ in 1...4 {
      let next = folded(key).precomposedStringWithCompatibilityMapping
      if Array(next.utf8) == Array(key.utf8) { break }
      key = next
    }
    return key
  }
}

extension Username {
  /// Refuses what a new account cannot be called, though an account of an older version may be.
  ///
  /// Letters come from one script, or from Latin and those that are written with it in Japanese, Korean and Chinese:
  /// the "highly restrictive" level of UTS 39, section 5.2, over the scripts that UTS 31 recommends. Names of one
  /// script that look like names of another (`асе`, all Cyrillic, and `ace`) are not compared.
  ///
  /// - Throws: `InvalidValue` if scripts are mixed, if a character is invisible, or if the key is too long.
  public func checkAsNew() throws(InvalidValue) {
    guard key.utf8.count <= Self.longestKey else {
      throw InvalidValue(field: "username", rule: "has 1 to 128 characters")
    }
    guard text.unicodeScalars.allSatisfy({ !$0.properties.isDefaultIgnorableCodePoint || $0.isVariationSelector })
    else {
      throw InvalidValue(field: "username", rule: "has no invisible characters")
    }
    guard NameScripts.isUniform(key) else {
      throw InvalidValue(field: "username", rule: "has letters of one script, as Latin or Cyrillic, not of several")
    }
  }
}

extension User {
  /// Whether a client that writes `name` means this account.
  func isNamed(_ name: Username) -> Bool { username.key == name.key || username.key == name.formerKey }
}

extension UserRecords {
  /// The account that a client means by `name`.
  public func user(named name: Username) throws -> User? {
    if name.formerKey != name.key, let user = try user(named: name.formerKey) { return user }
    return try user(named: name.key)
  }
}

extension Unicode.Scalar {
  /// Emoji have one.
  fileprivate var isVariationSelector: Bool { value == 0xFE0F }
}

/// Which scripts names are written in.
private enum NameScripts {
  private static let alone = [
    "Arab", "Armn", "Beng", "Cyrl", "Deva", "Ethi", "Geor", "Grek", "Gujr", "Guru", "Hebr", "Khmr", "Knda", "Laoo",
    "Mlym", "Mymr", "Orya", "Sinh", "Taml", "Telu", "Thaa", "Thai", "Tibt",
  ]
  private static let together = [
    ["Latn", "Hani", "Hira", "Kana"], ["Latn", "Hani", "Bopo"], ["Latn", "Hani", "Hang"],
  ]

  /// One pattern for each set of scripts. What all scripts share (digits, marks, signs) is in each.
  private static let patterns: [NSRegularExpression] = (alone.map { [$0] } + together).compactMap { scripts in
    let classes = (scripts + ["Zyyy", "Zinh"]).map { "\\p{scx=\($0)}" }.joined()
    return try? NSRegularExpression(pattern: "^[\(classes)]*\\z")
  }

  /// Whether all characters are of one set.
  static func isUniform(_ text: String) -> Bool {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return true }
    let range = NSRange(text.startIndex..., in: text)
    return patterns.contains { $0.firstMatch(in: text, range: range) != nil }
  }
}
