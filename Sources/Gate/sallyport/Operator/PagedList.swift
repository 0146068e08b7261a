internal import ByteCoding
internal import Commands
internal import GateService

/// A page of a list of the admin server.
protocol ListPage: Decodable, Sendable {
  associatedtype Entry: Encodable
  var entries: [Entry] { get }
  /// The `after` parameter of the next page; `nil` on the last page.
  var next: String? { get }
  /// What the page lacks, as messages.
  var warnings: [Message] { get }
}

extension ListPage {
  var warnings: [Message] { [] }
}

extension KeyListing: ListPage {
  var entries: [KeyDescription] { keys }
  var warnings: [Message] {
    (unreadable ?? []).map { .warning("the row of the key \($0) cannot be read: sallyport store check tells why") }
  }
}

extension DecisionListing: ListPage {
  var entries: [DecisionDescription] { decisions }
}

extension SessionListing: ListPage {
  var entries: [SessionDescription] { sessions }
}

extension AdminClient {
  /// The number of entries that one request asks for.
  private static let entriesOfPage = 500

  /// Prints the entries of a list, page after page, at most `limit`: as a table, or each as one line of JSON.
  ///
  /// - Parameters:
  ///   - path: The path of the list.
  ///   - parameters: Those of every page, without `limit` and `after`.
  ///   - table: Prints the entries as rows; `nil` prints JSON.
  ///   - row: The row of an entry at a time, which is the same for all entries.
  func printList<Page: ListPage>(
    _ type: Page.Type, at path: String, _ parameters: [(name: String, value: String?)] = [], limit: Int? = nil,
    in table: Table?, row: (Page.Entry, Table, Timestamp) -> [String]
  ) async throws(Failure) {
    var table = table
    let now = Timestamp.now()
    var rest = limit ?? .max
    var cursor: String?
    repeat {
      let query = Query([("limit", "\(min(rest, Self.entriesOfPage))"), ("after", cursor)] + parameters)
      let page = try await send("GET", path + query.text, type)
      if let rows = table {
        table?.print(page.entries.map { row($0, rows, now) })
      } else {
        for entry in page.entries { Console.print(JSONText.encoding(entry)) }
      }
      for warning in page.warnings { Console.tell(warning) }
      rest -= page.entries.count
      cursor = page.next
    } while cursor != nil && rest > 0
    table?.end()
  }
}
