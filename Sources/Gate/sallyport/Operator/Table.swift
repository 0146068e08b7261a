internal import ByteCoding
internal import Commands
internal import GateService
internal import Glibc

/// Prints rows as a table that fits the terminal, and as tab-separated lines with complete values elsewhere.
struct Table {
  /// A column of the table.
  struct Column {
    let heading: String
    /// What a column may lose where the terminal is too narrow.
    var loss = Loss.nothing
    enum Loss: Equatable {
      case nothing
      /// The middle of its values.
      case middle
      /// The column may be left out, those of the highest number first.
      case all(Int)
    }
  }

  private let columns: [Column]
  private let whenEmpty: String
  private let width: Int?
  private var hasRows = false

  /// - Parameters:
  ///   - whenEmpty: The line for a list without rows, on a terminal.
  ///   - width: The columns of the terminal; `nil` for no terminal.
  init(_ columns: [Column], whenEmpty: String, width: Int? = Self.terminalWidth) {
    self.columns = columns
    self.whenEmpty = whenEmpty
    self.width = width
  }

  /// Whether rows are for a person, who reads short ids and relative times.
  var isForPerson: Bool { width != nil }

  static var terminalWidth: Int? { StandardOutput.isTerminal ? TerminalStyle.columns : nil }

  /// Prints rows. Headings come before the first.
  mutating func print(_ rows: [[String]]) {
    guard !rows.isEmpty else { return }
    Console.print(lines(of: rows).joined(separator: "\n"))
    hasRows = true
  }

  /// Ends the table: on a terminal, a list without rows says so.
  func end() {
    if isForPerson, !hasRows { Console.print(whenEmpty) }
  }

  /// The lines of `rows`, with the headings if they are the first.
  func lines(of rows: [[String]]) -> [String] {
    let rows = rows.map { $0.map(TerminalText.printable) }
    guard let width else { return rows.map { $0.joined(separator: "\t") } }
    let headings = columns.map(\.heading)
    var widths = columns.indices.map { column in
      ([headings] + rows).map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
    }
    fit(&widths, in: width)
    return ((hasRows ? [] : [headings]) + rows).map { Self.line($0, widths) }
  }

  /// Shortens the columns that may lose their middle, then leaves columns out, until a row fits `width`. A width of 0
  /// leaves a column out.
  private func fit(_ widths: inout [Int], in width: Int) {
    func excess() -> Int { widths.filter { $0 > 0 }.reduce(-2) { $0 + $1 + 2 } - width }
    for (index, column) in columns.enumerated() where column.loss == .middle && excess() > 0 {
      widths[index] = max(min(widths[index], Self.leastWidth), widths[index] - excess())
    }
    let droppable = columns.indices.compactMap { index -> (index: Int, rank: Int)? in
      guard case .all(let rank) = columns[index].loss else { return nil }
      return (index, rank)
    }
    for column in droppable.sorted(by: { $0.rank > $1.rank }) where excess() > 0 { widths[column.index] = 0 }
  }

  /// What a shortened value keeps: enough to know an app by its team and its name.
  private static let leastWidth = 16

  private static func line(_ row: [String], _ widths: [Int]) -> String {
    let cells = zip(row, widths).compactMap { text, width -> String? in
      guard width > 0 else { return nil }
      let shown = text.count > width ? "\(text.prefix((width - 1) / 2))…\(text.suffix(width / 2))" : text
      return shown + String(repeating: " ", count: max(0, width - shown.count))
    }
    var line = cells.joined(separator: "  ")
    while line.hasSuffix(" ") { line.removeLast() }
    return line
  }
}

extension Table {
  /// The first characters of an id for a person, the whole id otherwise.
  func short(_ id: String) -> String { isForPerson ? String(id.prefix(8)) : id }

  /// How long ago an RFC 3339 time was for a person, the time itself otherwise; `-` for none.
  func time(_ text: String?, at now: Timestamp) -> String {
    guard let text else { return "-" }
    guard isForPerson, let instant = Timestamp(rfc3339: text) else { return text }
    return Figures.ago(seconds: now.since(instant).components.seconds)
  }
}
