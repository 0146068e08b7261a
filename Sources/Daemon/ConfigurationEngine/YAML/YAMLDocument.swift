internal import Yams

/// A YAML document as texts with places. The only file that knows Yams.
public struct YAMLDocument {
  /// Both count from 1, columns in Unicode scalars.
  public struct Position: Sendable, Hashable {
    public let line: Int
    public let column: Int
    public static let start = Position(line: 1, column: 1)
  }

  public indirect enum Content {
    case scalar(String)
    /// An empty value, `~` or `null`.
    case empty
    case list([Node])
    case section([Member])
  }

  public struct Node {
    public let content: Content
    public let position: Position
  }

  public struct Member {
    /// `nil` for a key that is not a text.
    public let key: String?
    public let position: Position
    public let value: Node
  }

  /// Why a text is not YAML, or more of it than a configuration needs.
  public struct Malformed: Error {
    public let reason: String
    public let position: Position
  }

  /// The maximum number of nodes after aliases are expanded: far more than any configuration has, and a limit for
  /// aliases of aliases.
  private static let mostNodes = 20_000

  private let originals: [String: String]
  private var nodes = 0

  /// The root of the document in `text`; an empty document is `.empty`. A byte order mark at the start, which editors
  /// of some systems write, is not part of it (YAML 1.2 section 5.2), nor of its first line's columns.
  public static func parse(_ text: String) throws(Malformed) -> Node {
    let hasMark = text.unicodeScalars.first == "\u{FEFF}"
    let text = hasMark ? String(text.unicodeScalars.dropFirst()) : text
    if let position = AliasKeys.firstExpensive(in: text) {
      throw Malformed(
        reason: "a key is not a word, and the file has too many aliases to look at it", position: position)
    }
    let (root, originals) = try DuplicateTolerantParser.root(of: text)
    guard let root else { return Node(content: .empty, position: .start) }
    var document = YAMLDocument(originals: originals)
    return try document.node(root)
  }

  private init(originals: [String: String]) { self.originals = originals }

  private mutating func node(_ node: Yams.Node) throws(Malformed) -> Node {
    let position = Position(node.mark)
    nodes += 1
    guard nodes <= Self.mostNodes else { throw Malformed(reason: "the file has too many values", position: position) }
    switch node {
    case .scalar(let scalar):
      let isNull = scalar.style == .plain && ["", "~", "null", "Null", "NULL"].contains(scalar.string)
      return Node(content: isNull ? .empty : .scalar(scalar.string), position: position)
    case .sequence(let sequence):
      var elements: [Node] = []
      for element in sequence { elements.append(try self.node(element)) }
      return Node(content: .list(elements), position: position)
    case .mapping(let mapping):
      var members: [Member] = []
      for (key, value) in mapping {
        let name = key.scalar.map { originals[$0.string] ?? $0.string }
        members.append(Member(key: name, position: Position(key.mark), value: try self.node(value)))
      }
      return Node(content: .section(members), position: position)
    case .alias:
      // The composer follows aliases itself; a node of this kind appears only in trees made by hand.
      return Node(content: .empty, position: position)
    }
  }
}

extension YAMLDocument.Position {
  fileprivate init(_ mark: Mark?) {
    self.init(line: mark?.line ?? 1, column: mark?.column ?? 1)
  }
}

/// Parses documents whose sections may contain a key twice.
///
/// Yams stops at the first such section and does not report where the second key stands. A configuration must report
/// all its faults with their places. So the first of the keys is overwritten with private characters of the same
/// width, which keeps every column, and the text is parsed again; the tree then gets the original characters back.
private enum DuplicateTolerantParser {
  private static let firstPrivate: UInt32 = 0xE000
  /// Each costs a parse of the whole text. An editor who has made so many mistakes of this kind made one in a script.
  private static let mostPrivate = 20

  static func root(of text: String) throws(YAMLDocument.Malformed) -> (root: Yams.Node?, originals: [String: String]) {
    var text = text
    var originals: [String: String] = [:]
    while true {
      do {
        // Types are not resolved, so no rule for them is tried.
        return (try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot(), originals)
      } catch YamlError.duplicatedKeysInMapping(let keys, let context) {
        let position = YAMLDocument.Position(context.mark)
        let given = "the key \(keys.sorted().first ?? "") is given twice"
        guard originals.count < mostPrivate, let key = keys.min(),
          let scalar = Unicode.Scalar(firstPrivate + UInt32(originals.count))
        else { throw YAMLDocument.Malformed(reason: given, position: position) }
        let replacement = String(String.UnicodeScalarView(key.unicodeScalars.map { _ in scalar }))
        guard originals[replacement] == nil, let changed = replace(key, by: replacement, at: position, in: text) else {
          throw YAMLDocument.Malformed(reason: given, position: position)
        }
        originals[replacement] = originals[key] ?? key
        text = changed
      } catch {
        throw YAMLDocument.Malformed(error)
      }
    }
  }

  /// `text` with `key` at `position`, quoted or not, replaced; `nil` if the key is written in another way.
  private static func replace(
    _ key: String, by replacement: String, at position: YAMLDocument.Position, in text: String
  ) -> String? {
    let scalars = text.unicodeScalars
    guard var start = text.unicodeScalarIndex(of: position) else { return nil }
    if start < scalars.endIndex, scalars[start] == "\"" || scalars[start] == "'" { start = scalars.index(after: start) }
    guard !key.isEmpty, scalars[start...].starts(with: key.unicodeScalars) else { return nil }
    let end = scalars.index(start, offsetBy: key.unicodeScalars.count)
    return String(scalars[..<start]) + replacement + String(scalars[end...])
  }
}

extension String {
  fileprivate func unicodeScalarIndex(of position: YAMLDocument.Position) -> Index? {
    var line = 1
    var index = unicodeScalars.startIndex
    while line < position.line {
      guard index < unicodeScalars.endIndex else { return nil }
      if unicodeScalars[index] == "\n" { line += 1 }
      index = unicodeScalars.index(after: index)
    }
    return unicodeScalars.index(index, offsetBy: position.column - 1, limitedBy: unicodeScalars.endIndex)
  }

  /// Whether the character at `position` is a tab.
  fileprivate func isTab(at position: YAMLDocument.Position) -> Bool {
    guard let index = unicodeScalarIndex(of: position), index < unicodeScalars.endIndex else { return false }
    return unicodeScalars[index] == "\t"
  }

  fileprivate func position(ofCharacter offset: Int) -> YAMLDocument.Position {
    let before = unicodeScalars.prefix(upTo: index(startIndex, offsetBy: offset, limitedBy: endIndex) ?? endIndex)
    let lastLine = before.split(separator: "\n", omittingEmptySubsequences: false).last ?? before[...]
    return YAMLDocument.Position(line: before.count { $0 == "\n" } + 1, column: lastLine.count + 1)
  }
}

extension YAMLDocument.Malformed {
  fileprivate init(_ error: any Error) {
    switch error {
    case YamlError.scanner(_, _, let mark, let yaml) where yaml.isTab(at: YAMLDocument.Position(mark)):
      self.init(
        reason: "a tab cannot indent YAML: replace it with blanks", position: YAMLDocument.Position(mark))
    // The file's end says nothing about where the quote is.
    case YamlError.scanner(let context?, "found unexpected end of stream", _, _) where context.text.contains("quoted"):
      self.init(reason: "not YAML: the quote is not closed", position: YAMLDocument.Position(context.mark))
    case YamlError.scanner(let context, let problem, let mark, _),
      YamlError.parser(let context, let problem, let mark, _):
      let context = context.map { "\($0.text), " } ?? ""
      // The library's own sentence names a C function.
      let reason =
        problem.hasPrefix("Maximum nesting level")
        ? "lists and sections are nested too deeply" : "not YAML: \(context)\(problem)"
      self.init(reason: reason, position: YAMLDocument.Position(mark))
    case YamlError.composer(_, let problem, let mark, _):
      self.init(reason: "not one YAML document: \(problem)", position: YAMLDocument.Position(mark))
    case YamlError.reader(let problem, let offset, _, let yaml):
      self.init(reason: "not YAML: \(problem)", position: offset.map(yaml.position(ofCharacter:)) ?? .start)
    default:
      self.init(reason: "not YAML: \(error)", position: .start)
    }
  }
}
