public import ByteCoding

/// The order of a list, which links in the head of its table change. The service sorts, so that the order is that of the
/// whole list, and not of a page.
public struct ConsoleSort: Sendable {
  private let path: String
  private let filters: [(name: String, value: String?)]
  /// The names of the columns in queries, by heading.
  private let names: [String: String]
  private let standard: String?
  private let current: String?

  /// - Parameters:
  ///   - columns: The headings of the columns that can be sorted, and their names in queries.
  ///   - standard: The order without a choice, such as `opened`, or `-opened` for descending; `nil` if it is that of no
  ///     column.
  ///   - query: Has the choice in its field `sort`. An unknown one is no choice.
  ///   - filters: The fields that the links keep.
  public init(
    _ path: String, _ columns: [(heading: String, name: String)], standard: String? = nil, _ query: ConsoleForm,
    keeping filters: [(name: String, value: String?)]
  ) {
    (self.path, self.filters, self.standard) = (path, filters, standard)
    names = Dictionary(columns.map { ($0.heading, $0.name) }, uniquingKeysWith: { first, _ in first })
    let orders = columns.flatMap { [$0.name, "-" + $0.name] }
    current = query["sort"].flatMap { orders.contains($0) ? $0 : nil } ?? standard
  }

  /// The chosen order for a query of the service; `nil` for the standard one.
  public var choice: String? { current == standard ? nil : current }

  /// A field that keeps the order when a form filters the list.
  public var field: HTML {
    guard let choice else { return .nothing }
    return #"<input type="hidden" name="sort" value="\#(choice)">"#
  }

  /// Returns the cell in the head of the column `heading`.
  func cell(_ heading: String) -> HTML {
    guard let name = names[heading] else { return #"<th role="columnheader" scope="col">\#(heading)</th>"# }
    let next = current == name ? "-" + name : name
    let query = ConsoleForm.query(filters + [("sort", next == standard ? nil : next)])
    let order: HTML =
      current == name ? #" aria-sort="ascending""# : current == "-" + name ? #" aria-sort="descending""# : .nothing
    return #"<th role="columnheader" scope="col"\#(order)><a href="\#(path)\#(query)">\#(heading)</a></th>"#
  }
}
