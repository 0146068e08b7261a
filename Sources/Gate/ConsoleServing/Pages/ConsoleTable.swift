public import ByteCoding
internal import Commands

/// A table, for a page and for a file.
public struct ConsoleTable: Sendable {
  /// A value in a table.
  public struct Cell: Sendable {
    /// The value in a file.
    public let text: String
    /// The value on a page.
    public let markup: HTML
    var isNumber = false
    var isBlank = false
    /// Whether a file has the text unchanged.
    private(set) var isHash = false

    /// Creates a cell with a text of any origin.
    public init(_ text: String?) {
      self.text = text ?? ""
      markup = text.map { "\(Shown.text($0))" } ?? "<span class=\"quiet\">–</span>"
      isBlank = text == nil
    }

    /// Creates a cell with a number.
    public init(_ number: some BinaryInteger) {
      text = "\(number)"
      markup = "\(number)"
      isNumber = true
    }

    /// Creates a cell whose value looks different on a page.
    public init(_ text: String, _ markup: HTML) { (self.text, self.markup) = (text, markup) }

    /// Creates a cell with a hash in base64url, which a file has unchanged, also with a dash in front: a formula of
    /// letters, digits, dashes and underscores computes nothing but a number.
    public init(hash: String, _ markup: HTML) {
      self.init(hash, markup)
      isHash = hash.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
    }
  }

  public let caption: String
  public let columns: [String]
  public let rows: [[Cell]]
  public let whenEmpty: String
  private let sort: ConsoleSort?

  /// - Parameter sort: The order of the rows, which links in the head change; `nil` for rows that cannot be sorted.
  public init(
    _ caption: String, _ columns: [String], _ rows: [[Cell]], whenEmpty: String, sort: ConsoleSort? = nil
  ) {
    (self.caption, self.columns, self.rows, self.whenEmpty, self.sort) = (caption, columns, rows, whenEmpty, sort)
  }

  /// The table for a page. Its parts have roles: on a narrow screen the style sheet shows rows as cards, and browsers
  /// would no longer announce a table.
  public var markup: HTML {
    guard !rows.isEmpty else { return #"<p class="card empty">\#(whenEmpty)</p>"# }
    let headings = columns.map { heading -> HTML in
      sort?.cell(heading) ?? #"<th role="columnheader" scope="col">\#(heading)</th>"#
    }
    let tone: HTML = sort == nil ? .nothing : #" class="sorted""#
    return """
      <div class="card scroll"><table role="table"\(tone)><caption class="unseen">\(caption)</caption>
      <thead role="rowgroup"><tr role="row">\(headings)</tr></thead>
      <tbody role="rowgroup">\(rows.map(row))</tbody></table></div>
      """
  }

  private func row(_ cells: [Cell]) -> HTML {
    let cells = zip(columns, cells).map { column, cell -> HTML in
      let tone: HTML = cell.isNumber ? #" class="number""# : cell.isBlank ? #" class="blank""# : .nothing
      return #"<td role="cell" data-label="\#(column)"\#(tone)>\#(cell.markup)</td>"#
    }
    return "<tr role=\"row\">\(cells)</tr>\n"
  }

  /// The table as a file of comma-separated values (RFC 4180), without columns that have no heading: those have forms.
  ///
  /// A value that a spreadsheet would compute as a formula gets an apostrophe in front of the formula: clients choose
  /// some values.
  public var csv: String {
    let named = columns.indices.filter { !columns[$0].isEmpty }
    let heading = named.map { Self.field(columns[$0]) }
    let lines = rows.map { row in
      named.map { $0 < row.count ? Self.field(row[$0].text, isHash: row[$0].isHash) : "" }
    }
    return ([heading] + lines).map { $0.joined(separator: ",") + "\r\n" }.joined()
  }

  private static func field(_ text: String, isHash: Bool = false) -> String {
    let safe = isHash ? text : withoutFormulas(text)
    let needsQuotes = safe.utf8.contains { Array(",;\t\"\r\n".utf8).contains($0) }
    return needsQuotes ? "\"" + safe.replacing("\"", with: "\"\"") + "\"" : safe
  }

  /// Returns `text` with an apostrophe in front of each formula.
  ///
  /// A formula begins a cell. Some spreadsheets also separate cells by semicolons, tabs and line ends, and then read a
  /// part of a value as a cell of its own.
  private static func withoutFormulas(_ text: String) -> String {
    let (starts, separators, skipped) = (Array("=+-@\t\r".utf8), Array(";\t\r\n".utf8), Array("\" ".utf8))
    var bytes: [UInt8] = []
    var beginsCell = true
    for byte in text.utf8 {
      if beginsCell, starts.contains(byte) { bytes.append(UInt8(ascii: "'")) }
      beginsCell = separators.contains(byte) || beginsCell && skipped.contains(byte)
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Formats values for pages.
public enum Shown {
  /// Returns `text` with U+FFFD for characters that are invisible or change the direction of others.
  public static func text(_ text: String) -> String { TerminalText.printable(text) }

  /// Returns an instant relative to `now`, with the exact one in its title.
  public static func time(_ rfc3339: String, at now: Timestamp) -> HTML {
    guard let instant = Timestamp(rfc3339: rfc3339) else { return "\(text(rfc3339))" }
    let exact = instant.wholeSecond.description
    return #"<time datetime="\#(exact)" title="\#(exact)">\#(distance(now.since(instant).components.seconds))</time>"#
  }

  /// Returns how long ago an instant was or how soon it will be, in its largest unit.
  public static func distance(_ seconds: Int64) -> String {
    let amount = seconds.magnitude
    let text =
      switch amount {
      case ..<1: "now"
      case ..<60: "\(amount) s"
      case ..<3600: "\(amount / 60) min"
      case ..<86_400: "\(amount / 3600) h"
      default: "\(amount / 86_400) d"
      }
    return amount == 0 ? text : seconds > 0 ? "\(text) ago" : "in \(text)"
  }

  /// Returns a command line with `words`, each quoted if necessary.
  public static func command(_ words: [String]) -> String { words.map(ShellWord.quoting).joined(separator: " ") }
}
