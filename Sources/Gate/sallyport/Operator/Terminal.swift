internal import ByteCoding
internal import Glibc

/// Interaction with a person at a terminal.
enum Terminal {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// Asks on standard error; only the answers `y` and `yes` confirm.
  static func confirms(_ question: String) -> Bool {
    Progress.write("\(question) [y/N] ")
    let answer = readLine()?.lowercased()
    return answer == "y" || answer == "yes"
  }
}

/// Prints rows as a table on a terminal, and as tab-separated lines elsewhere.
struct Table {
  private let headings: [String]
  private var hasHeadings = false

  init(_ headings: String...) { self.headings = headings }

  /// Prints rows: in columns with headings on a terminal, otherwise tab-separated and without headings.
  mutating func print(_ rows: [[String]]) {
    guard !rows.isEmpty else { return }
    let rows = rows.map { $0.map(TerminalText.printable) }
    guard Terminal.isTerminal(STDOUT_FILENO) else {
      Console.print(rows.map { $0.joined(separator: "\t") }.joined(separator: "\n"))
      return
    }
    let lines = hasHeadings ? rows : [headings] + rows
    hasHeadings = true
    let widths = headings.indices.map { column in
      ([headings] + rows).map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
    }
    Console.print(lines.map { Self.line($0, widths) }.joined(separator: "\n"))
  }

  private static func line(_ row: [String], _ widths: [Int]) -> String {
    let cells = zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
    var line = cells.joined(separator: "  ")
    while line.hasSuffix(" ") { line.removeLast() }
    return line
  }
}

/// Shows the progress of long work on one line of a terminal. Prints nothing elsewhere.
struct Progress {
  private let unit: String
  private let isShown = Terminal.isTerminal(STDERR_FILENO)

  init(of unit: String) { self.unit = unit }

  func show(_ count: Int, of total: Int) {
    if isShown { Self.write("\r\(count) of \(total) \(unit)") }
  }

  func end() {
    if isShown { Self.write("\r\u{1B}[K") }
  }

  fileprivate static func write(_ text: String) {
    let bytes = Array(text.utf8)
    // Progress output is only informative, so a failed write is ignored.
    _ = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
