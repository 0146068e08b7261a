internal import Foundation

/// The name of an account: 1 to 128 characters without control characters, and without white space at its ends.
///
/// Names that differ only in case or in compatibility forms are equal (NFKC, in any script): full-width letters equal
/// the plain ones, `ß` equals `SS` by the full case mappings, and a final sigma equals one in the middle.
public struct Username: Sendable, Hashable {
  /// As the client wrote it.
  public let text: String
  /// The form for comparison and storage.
  public let key: String
  /// The key by the rule of older versions, which kept compatibility forms apart. An account that would have shared its
  /// key with another one at the migration still has this key, so it is looked for first.
  public let formerKey: String

  /// The most bytes that a key has in an index.
  public static let longestKey = 1024

  public init(_ text: String) throws(InvalidValue) {
    // Bytes first: counting characters and comparing them takes longer the more marks a character has.
    guard text.utf8.count <= 512, (1...128).contains(text.count) else {
      throw InvalidValue(field: "username", rule: "has 1 to 128 characters")
    }
    guard text.hasNoControls, !text.hasOuterSpace else {
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

  // As the database compares them. Keys are in one normal form already.
  public static func == (first: Username, second: Username) -> Bool { first.key.hasBytes(of: second.key) }
  public func hash(into hasher: inout Hasher) { key.addBytes(to: &hasher) }

  /// The text in lower case after a mapping to upper case, because some letters become equal only in upper case.
  ///
  /// The capital ẞ is its own upper case, and the small one becomes SS: lower case first makes them equal.
  private static func folded(_ text: String) -> String { text.lowercased().uppercased().lowercased() }

  /// Normalizes after the folding as well, because the lower case of composed text may be decomposed (`J̌` has no
  /// single character, `ǰ` has one). Repeats until nothing changes, because some letters have compatibility forms in
  /// one case only.
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
  /// Checks the additional rules for a new account; older accounts may break them.
  ///
  /// Letters must be from one script, or from Latin together with the scripts of Japanese, Korean and Chinese: the
  /// "highly restrictive" level of UTS 39, section 5.2, for the scripts that UTS 31 recommends. Names of one script
  /// that look like names of another (`асе`, all Cyrillic, and `ace`) are not compared. Invisible characters, and those
  /// that look like a space, are refused: a name with one looks like the name without it. Marks without a letter, and
  /// more than four marks in a row, are refused too (UTS 39, section 5.4).
  ///
  /// - Throws: `InvalidValue` if scripts are mixed, if a character is invisible, if marks or spaces are heaped, or if
  ///   the key is too long.
  public func checkAsNew() throws(InvalidValue) {
    guard PathSegment.carries(key) else { throw InvalidValue(field: "username", rule: PathSegment.rule) }
    guard key.utf8.count <= Self.longestKey else {
      throw InvalidValue(field: "username", rule: "has 1 to 128 characters")
    }
    guard text.unicodeScalars.allSatisfy(\.isOfNewNames) else {
      throw InvalidValue(field: "username", rule: "has no invisible or unassigned characters, and no space but U+0020")
    }
    guard text.hasNoHeaps else {
      throw InvalidValue(field: "username", rule: "has single spaces, and at most four marks after a character")
    }
    guard NameScripts.isUniform(key) else {
      throw InvalidValue(field: "username", rule: "has letters of one script, as Latin or Cyrillic, not of several")
    }
  }
}

extension User {
  /// Whether a client that writes `name` means this account.
  func isNamed(_ name: Username) -> Bool {
    username.key.hasBytes(of: name.key) || username.key.hasBytes(of: name.formerKey)
  }
}

extension UserRecords {
  /// The account that a client means by `name`. The lookups are the same for a name without an account.
  public func user(named name: Username) throws -> User? {
    let former = name.formerKey.hasBytes(of: name.key) ? nil : try user(named: name.formerKey)
    let current = try user(named: name.key)
    return former ?? current
  }

  /// The key that limits and the history have for the account that a client means by `name`. An account that kept its
  /// former key has that one; a name without an account has its own.
  func accountKey(of name: Username) throws -> String { try user(named: name)?.username.key ?? name.key }
}

extension String {
  /// Whether both have the same bytes. `==` also takes texts as equal that differ in their composition.
  func hasBytes(of other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  /// Adds the bytes to `hasher`, and an end: no text is the beginning of another one then.
  func addBytes(to hasher: inout Hasher) {
    var text = self
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }

  fileprivate var hasOuterSpace: Bool {
    [unicodeScalars.first, unicodeScalars.last].contains { $0?.properties.isWhitespace == true }
  }

  /// Whether each space stands alone, and each character has at most four marks, the first one none.
  fileprivate var hasNoHeaps: Bool {
    if utf8.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: " ") }) { return true }
    var (marks, isAfterSpace) = (4, false)
    return decomposedStringWithCanonicalMapping.unicodeScalars.allSatisfy { scalar in
      marks = scalar.isMark ? marks + 1 : 0
      defer { isAfterSpace = scalar == " " }
      return marks <= 4 && !(isAfterSpace && scalar == " ")
    }
  }
}

extension Unicode.Scalar {
  /// Whether it may be a part of a new name.
  fileprivate var isOfNewNames: Bool {
    if isASCII { return isVisible }
    // The blank pattern of Braille looks like a space.
    guard isVisible, value != 0x2800 else { return false }
    let category = properties.generalCategory
    return category != .unassigned && category != .spaceSeparator
  }

  fileprivate var isMark: Bool {
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark: true
    default: false
    }
  }
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

  /// One pattern for each set of scripts. Each includes the characters that all scripts share: digits, marks and
  /// signs.
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
